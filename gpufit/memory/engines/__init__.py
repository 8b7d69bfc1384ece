"""What serving engines do with memory, as small sets of rules: one module an engine, each rule with its source."""
