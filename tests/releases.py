"""Which release of transformers a test needs: rules are compared with the sources that they were read in."""

from importlib.metadata import version

import pytest
from packaging.version import Version

READ_IN = "5.24"
"""The release of transformers whose classes the rules of architectures were read in."""

needs_release_read = pytest.mark.skipif(
    Version(version("transformers")) < Version(READ_IN),
    reason=f"compares with transformers {READ_IN}: earlier releases lack families, settings and ways to shard",
)
