"""The hub path: huggingface_hub's own client in a process of its own, against a small server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hub_server import COMMIT, Hub, Repository, serving
from model_files import safetensors_bytes

CONFIG = {"model_type": "llama", "hidden_size": 8}
TENSORS = {
    "embed.weight": ("BF16", (2000, 1000)),
    "layer.weight": ("F32", (1000, 2000)),
    "head.weight": ("U8", (4000, 1000)),
}
BYTES = 2000 * 1000 * 2 + 1000 * 2000 * 4 + 4000 * 1000

_ASK = """
import json, sys
from gpufit.errors import GpufitError
from gpufit.sources.model_files.headers import open_headers
try:
    found = open_headers(*sys.argv[1:])
except GpufitError as error:
    print(json.dumps({"refused": type(error).__name__, "said": str(error)}))
else:
    print(json.dumps({
        "name": found.name, "format": found.format, "bytes": found.weight_bytes, "revision": found.revision,
        "notes": found.notes, "config": found.config, "tensors": [[t.name, t.dtype, t.shape] for t in found.tensors],
    }))
"""


def file_of(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> bytes:
    head, data_bytes = safetensors_bytes(tensors)
    return head + bytes(data_bytes)


def text(values: object) -> bytes:
    return json.dumps(values).encode()


@dataclass
class Asking:
    """A user with an empty cache."""

    hub: Hub
    home: Path

    def __call__(self, *arguments: str, **environment: str) -> dict[str, Any]:
        self.hub.requests.clear()
        self.hub.sent.clear()
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
        own = {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.home), "HF_HUB_DISABLE_TELEMETRY": "1"}
        done = subprocess.run(
            [sys.executable, "-c", _ASK, *arguments],
            env={**plain, **own, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refusal(self, *arguments: str, **environment: str) -> str:
        found = self(*arguments, **environment)
        assert found.get("refused") == "UnreadableInputError", found
        said: str = found["said"]
        assert said.startswith(f"{arguments[0]}: ")
        assert "\n" not in said
        return said


NAMES = list(TENSORS)
SHARDS = {f"model-{number + 1:05}-of-00003.safetensors": {name: TENSORS[name]} for number, name in enumerate(NAMES)}
INDEX = text({"weight_map": {name: shard for shard, part in SHARDS.items() for name in part}})
SHARDED = {"config.json": text(CONFIG), "model.safetensors.index.json": INDEX} | {
    shard: file_of(part) for shard, part in SHARDS.items()
}
SINGLE = {"config.json": text(CONFIG), "model.safetensors": file_of(TENSORS)}


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    with serving(Hub({"org/sharded": Repository(SHARDED), "org/single": Repository(SINGLE)})) as hub:
        yield Asking(hub, tmp_path / "home")


@pytest.mark.parametrize(("name", "most_bytes"), [("org/single", 110_000), ("org/sharded", 310_000)])
def test_headers_come_by_ranges_and_the_weights_stay_where_they_are(asking: Asking, name: str, most_bytes: int) -> None:
    found = asking(name)
    assert (found["name"], found["format"], found["revision"], found["notes"]) == (name, "safetensors", COMMIT, [])
    assert found["config"] == CONFIG
    assert found["bytes"] == BYTES
    assert {one: (dtype, tuple(shape)) for one, dtype, shape in found["tensors"]} == TENSORS
    # A hundred kilobytes a shard at most, of sixteen megabytes.
    assert sum(asking.hub.sent.values()) < most_bytes < BYTES / 50


def test_a_header_longer_than_the_first_request_is_asked_for_in_two(asking: Asking) -> None:
    many = {f"model.layers.{number}.some.long.name.of.a.tensor.weight": ("U8", (1,)) for number in range(3000)}
    asking.hub.repositories["org/many"] = Repository({"config.json": b"{}", "model.safetensors": file_of(many)})
    length = len(safetensors_bytes(many)[0])
    assert length > 200_000
    assert len(asking("org/many")["tensors"]) == 3000
    ranges = [asked for _, path, asked in asking.hub.requests if path.endswith("model.safetensors")]
    assert ranges == ["bytes=0-99999", f"bytes=100000-{length - 1}"]


def test_a_server_that_ignores_ranges_is_read_no_further_than_the_header(asking: Asking) -> None:
    asking.hub.ranges = False
    large = {"a.weight": ("U8", (100_000_000,))}
    asking.hub.repositories["org/large"] = Repository({"config.json": b"{}", "model.safetensors": file_of(large)})
    assert asking("org/large")["bytes"] == 100_000_000
    assert asking.hub.sent["model.safetensors"] < 50_000_000


def test_a_revision_is_asked_for_by_name_and_the_rest_by_its_commit(asking: Asking) -> None:
    assert asking("org/single", "main")["revision"] == COMMIT
    revisions = {path.split("/")[4] for _, path, _ in asking.hub.requests if "/resolve/model" in path}
    assert revisions <= {COMMIT}
    assert "no such revision" in asking.refusal("org/single", "v9")


def test_what_the_cache_holds_whole_is_read_without_the_network(asking: Asking, tmp_path: Path) -> None:
    from huggingface_hub import constants  # the layout of the cache is the client's own

    assert constants.HF_HUB_CACHE
    repository = asking.home / "hub" / "models--org--cached"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for name, body in SHARDED.items():
        (snapshot / name).write_bytes(body)
    for offline in ("0", "1"):
        found = asking("org/cached", HF_HUB_OFFLINE=offline)
        assert (found["name"], found["revision"], found["bytes"]) == ("org/cached", COMMIT, BYTES)
        assert asking.hub.requests == []
    next(snapshot.glob("model-00002*")).unlink()
    assert "HF_HUB_OFFLINE keeps gpufit from asking" in asking.refusal("org/cached", HF_HUB_OFFLINE="1")
    assert "no such repository" in asking.refusal("org/cached")


def test_a_token_opens_what_is_private(asking: Asking) -> None:
    asking.hub.repositories["org/private"] = Repository(SINGLE, token="hf_right")
    assert asking("org/private", HF_TOKEN="hf_right")["bytes"] == BYTES
    assert "or a private one (set HF_TOKEN" in asking.refusal("org/private", HF_HOME=str(asking.home / "other"))


@pytest.mark.parametrize(
    ("repository", "token", "said"),
    [
        ("org/gated", None, "the hub keeps it gated: ask for access on its page there"),
        ("org/gated", "hf_wrong", "the hub refuses the token: check HF_TOKEN"),
        ("org/nothing", None, "no such repository on the hub"),
        ("org/no-config", None, "has no config.json on the hub; of a repository of GGUF files download one"),
        ("org/lost-shard", None, "names a shard that is not there"),
        ("org/bad-index", None, "names no shards"),
        ("org/bad-config", None, "not JSON"),
        ("org/truncated", None, "cut short or damaged"),
        ("org/huge-header", None, "not a whole safetensors file"),
    ],
)
def test_what_the_hub_cannot_give_is_one_line(asking: Asking, repository: str, token: str | None, said: str) -> None:
    whole = file_of(TENSORS)
    config = {"config.json": text(CONFIG)}
    asking.hub.repositories |= {
        "org/gated": Repository(SINGLE, gated=True, token="hf_right"),
        "org/no-config": Repository({"README.md": b""}),
        "org/lost-shard": Repository({one: body for one, body in SHARDED.items() if "00002-of" not in one}),
        "org/bad-index": Repository(config | {"model.safetensors.index.json": b"{}"}),
        "org/bad-config": Repository({"config.json": b"{", "model.safetensors": whole}),
        "org/truncated": Repository(config | {"model.safetensors": whole[:-5]}),
        "org/huge-header": Repository(config | {"model.safetensors": b"\xff" * 7 + b"\x0f" + whole[8:]}),
    }
    environment = {} if token is None else {"HF_TOKEN": token}
    assert said in asking.refusal(repository, **environment)


def test_pickled_weights_are_counted_by_the_hubs_sizes(asking: Asking) -> None:
    files = {"config.json": text(CONFIG), "pytorch_model.bin": bytes(1234), "sub/other.bin": bytes(9)}
    asking.hub.repositories["org/pickled"] = Repository(files)
    found = asking("org/pickled")
    assert (found["format"], found["bytes"], found["tensors"]) == ("pickled", 1234, [])
    assert asking.hub.sent.get("pytorch_model.bin") is None


def test_quantisation_beside_the_config_is_fetched_where_the_tensors_are_quantised(asking: Asking) -> None:
    packed = {"a.qweight": ("I32", (4, 4))}
    files = {
        "config.json": text(CONFIG),
        "model.safetensors": file_of(packed),
        "quantize_config.json": text({"bits": 4}),
    }
    asking.hub.repositories["org/gptq"] = Repository(files)
    assert asking("org/gptq")["config"]["quantization_config"] == {"quant_method": "gptq", "bits": 4}


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "nonsense"])
def test_no_hub_is_one_line_and_at_once(asking: Asking, endpoint: str) -> None:
    # The client by itself repeats a request for 23 seconds; a process and its imports take one.
    assert "the hub cannot be reached" in asking.refusal("org/single", HF_ENDPOINT=endpoint)


def test_offline_asks_nobody(asking: Asking) -> None:
    assert "HF_HUB_OFFLINE keeps gpufit from asking the hub" in asking.refusal("org/single", HF_HUB_OFFLINE="1")
    assert asking.hub.requests == []


def test_a_directory_of_the_same_name_comes_first(asking: Asking, tmp_path: Path) -> None:
    folder = tmp_path / "org" / "single"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    found = asking(str(folder))
    assert (found["format"], asking.hub.requests) == ("none", [])
