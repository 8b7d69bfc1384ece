"""Where gpufit's own files are, and where the user's are."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_catalog_dir() -> Path:
    """The catalog that comes with gpufit: inside an installed package, or at the top of a source checkout."""
    installed = _PACKAGE / "_data" / "catalog"
    return installed if installed.is_dir() else _PACKAGE.parent / "catalog"


def user_catalog_dir() -> Path:
    """Where a user's own cards and offers are looked for (it need not exist)."""
    import platformdirs

    return Path(platformdirs.user_config_dir("gpufit")) / "catalog"


def state_path() -> Path:
    """Where the terminal interface keeps its last view (it need not exist); safe to delete at any time."""
    import platformdirs

    return Path(platformdirs.user_state_dir("gpufit")) / "tui.json"


def converted_dir() -> Path:
    """Where converted copies of GGUF files are kept (it need not exist); safe to delete at any time."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("gpufit")) / "converted"


def profiles_dir() -> Path:
    """Where profiles are written and looked for: `profiles/` in the working directory."""
    return Path("profiles")
