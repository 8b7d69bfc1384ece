"""The catalog: cards and offers as frozen records, read from TOML files that a buyer can edit."""
