"""The style sheet of the HTML page: light and dark by the reader's setting, narrow screens, and paper."""

from __future__ import annotations

from gpufit.report.part_groups import PART_GROUPS

_COLOURS = "\n".join(f".part-{number} {{ fill: {group.colour} }}" for number, group in enumerate(PART_GROUPS))

STYLE = (
    """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b2430; --dim: #576173; --line: #d5dae3; --shade: #f3f5f9; --track: #e8ecf3;
  --fits: #0b6b34; --close: #7a5200; --not: #b3201f; --unknown: #576173;
  --several: #1d4f91; --several-shade: #e3edfa;
  --fits-shade: #e2f5e9; --close-shade: #fdf1d0; --not-shade: #fde4e3; --unknown-shade: #eceff4;
  --mark: #10161f; --halo: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0f131a; --ink: #d5dae3; --dim: #98a3b5; --line: #2d3748; --shade: #171d27; --track: #222b39;
    --fits: #62d68a; --close: #ffcf5c; --not: #ff8b8b; --unknown: #98a3b5;
    --several: #8fbcff; --several-shade: #16273f;
    --fits-shade: #12301f; --close-shade: #33290d; --not-shade: #3a1a1d; --unknown-shade: #1f2734;
    --mark: #ffffff; --halo: #0f131a;
  }
}
* { box-sizing: border-box }
body {
  margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2.5rem) 3rem; max-width: 90rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line) }
p, ul, ol, dl { margin: .4rem 0 }
a { color: inherit; text-decoration-color: var(--dim); text-underline-offset: .2em }
a:hover, a:focus-visible { text-decoration-thickness: 2px }
article + article { margin-top: 3.5rem; padding-top: 1.5rem; border-top: 4px double var(--line) }
.back { margin: 0 0 .4rem; font-size: .875rem }
.dim, small, caption, figcaption { color: var(--dim) }
code, pre { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace }
.tally { list-style: none; display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; margin: .8rem 0 0 }
.tally li { padding: .25rem .75rem; border-radius: 1rem; border: 1px solid; font-weight: 600 }
.fits { color: var(--fits); background: var(--fits-shade) }
.too_close { color: var(--close); background: var(--close-shade) }
.does_not_fit { color: var(--not); background: var(--not-shade) }
.unknown { color: var(--unknown); background: var(--unknown-shade) }
.several { color: var(--several); background: var(--several-shade) }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem }
.facts dt { color: var(--dim) }
.facts dd { margin: 0 }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .85rem }
caption { text-align: left; padding: .4rem .45rem; caption-side: bottom }
caption span { position: sticky; left: .45rem; display: inline-block; max-width: calc(100vw - 4rem) }
th, td { padding: .35rem .45rem; text-align: right; vertical-align: top; white-space: nowrap; overflow-wrap: normal }
thead th { background: var(--shade); color: var(--dim); font-weight: 600; border-bottom: 1px solid var(--line);
  white-space: normal }
tbody tr + tr > * { border-top: 1px solid var(--line) }
.left { text-align: left }
tbody th { text-align: left; font-weight: 600; background: var(--paper); white-space: normal; min-width: 9.5rem;
  max-width: 22rem; overflow-wrap: anywhere }
td small { display: block }
tbody th small { display: block; font-weight: 400 }
th:first-child { position: sticky; left: 0 }
td.words { white-space: normal; text-align: left; min-width: 16rem; max-width: 44rem; overflow-wrap: anywhere }
td.wraps { white-space: normal; min-width: 6rem }
thead th { white-space: normal; vertical-align: bottom }
td.verdict { font-weight: 600; text-align: left }
tr.total > * { border-top: 2px solid var(--line); font-weight: 600 }
figure { margin: 0 }
.bars { list-style: none; padding: 0; margin: .6rem 0 }
.bars li { display: grid; grid-template-columns: minmax(9rem, 17rem) minmax(10rem, 1fr) minmax(9rem, 17rem);
  gap: 0 1rem; align-items: center; padding: .3rem 0; border-bottom: 1px solid var(--line); break-inside: avoid }
.bars .name { font-weight: 600; line-height: 1.3 }
.bars .name small { display: block; font-weight: 600; background: none }
.bars .size { font-size: .875rem; line-height: 1.3; font-variant-numeric: tabular-nums }
.bars .size small { display: block }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0; font-size: .875rem }
.legend svg { vertical-align: -2px; overflow: visible }
.patterns { position: absolute }
.bar { display: block; overflow: visible }
.track { fill: var(--track) }
.part { stroke: var(--halo); stroke-width: .6 }
.stroke { stroke: #10161f; stroke-opacity: .55; stroke-width: 1; fill: none }
.interval { stroke: var(--mark); stroke-width: 1.6 }
.halo { stroke: var(--halo); stroke-width: 4.5; stroke-opacity: .75 }
.ceiling { stroke: var(--mark); stroke-width: 3 }
.cut { fill: var(--mark); font-weight: 700; font-size: 18px; stroke: var(--halo); stroke-width: 3; paint-order: stroke }
.chart { display: block; width: 100%; height: auto; font-size: 13px }
.chart .plot { fill: none; stroke: var(--line) }
.chart .grid { stroke: var(--line); stroke-width: .6 }
.chart .tick { fill: var(--dim) }
.chart .line { fill: none; stroke-width: 2.6; stroke-linejoin: round; stroke-linecap: round }
.chart .level { stroke: var(--dim); stroke-width: 1.2 }
.chart .level.strong { stroke: var(--mark); stroke-width: 2.4 }
.chart .here { stroke: var(--mark); stroke-width: 1; stroke-dasharray: 2 3 }
.chart .mark { fill: var(--mark); font-weight: 700; font-size: 15px }
.chart .mark, .chart .name { stroke: var(--paper); stroke-width: 3.5; paint-order: stroke }
.chart .name:not([fill]) { fill: var(--ink) }
.chart .name .strong { font-weight: 700 }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0; padding: .1rem .8rem }
summary { cursor: pointer; font-weight: 600; padding: .35rem 0 }
pre { background: var(--shade); border-radius: .4rem; padding: .6rem .8rem; white-space: pre-wrap; margin: .6rem 0 }
.notes li { margin: .2rem 0 }
footer { margin-top: 2.5rem; padding-top: .6rem; border-top: 1px solid var(--line); font-size: .875rem }
@media (max-width: 84rem) {
  table { font-size: .8rem }
  th, td { padding: .35rem .4rem }
  tbody th { min-width: 8rem }
}
@media (max-width: 46rem) {
  body { padding: 1rem .8rem 2rem; font-size: 15px }
  h1 { font-size: 1.3rem }
  .facts { grid-template-columns: 1fr }
  .facts dd { margin-bottom: .4rem }
  figure { overflow-x: auto }
  .chart { min-width: 44rem }
  .bars li { grid-template-columns: 1fr; gap: .1rem; padding: .6rem 0 }
  th, td { padding: .35rem .5rem }
  tbody th { min-width: 7.5rem; max-width: 9rem }
  td.words { min-width: 22rem }
}
@media print {
  @page { size: A4 landscape; margin: 11mm }
  :root { color-scheme: light; --paper: #fff; --ink: #000; --dim: #444; --line: #bbb; --shade: #f3f5f9;
    --track: #eceff4; --fits: #0b6b34; --close: #7a5200; --not: #b3201f; --unknown: #444;
    --several: #1d4f91; --several-shade: #e3edfa; --mark: #000; --halo: #fff;
    --fits-shade: #e2f5e9; --close-shade: #fdf1d0; --not-shade: #fde4e3; --unknown-shade: #eceff4 }
  body { padding: 0; max-width: none; font-size: 9pt }
  article + article { break-before: page; margin: 0; padding: 0; border: 0 }
  .back { display: none }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  .scroll { overflow: visible; border: 0 }
  table { font-size: 7.5pt }
  th, td { padding: .15rem .4rem }
  th:first-child { position: static }
  tr, .bars li { break-inside: avoid }
  thead { display: table-header-group }
  h2 { break-after: avoid }
  .legend, .bars .size { font-size: 8pt }
}
"""
    + _COLOURS
    + "\n"
)
"""Colours of the parts are those of the terminal."""
