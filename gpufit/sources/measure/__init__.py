"""A real run on the real device.

The command's own process never imports torch: `supervisor` starts `worker` in a process of its own, sends it one
`protocol.Job` and reads records as JSON lines, so an out-of-memory ends the worker and nothing else.
"""
