"""What the allocator keeps: blocks, linked to what lies beside them in their segment, in two pools of free ones."""

from __future__ import annotations

from bisect import bisect_left, insort


class Block:
    """A stretch of a segment: handed out, free, or (expandable segments) not backed by memory."""

    __slots__ = ("address", "after", "before", "born", "free", "mapped", "pool", "size_bytes")

    def __init__(self, pool: Pool, address: int, size_bytes: int, *, mapped: bool = True) -> None:
        self.pool = pool
        self.address = address
        self.size_bytes = size_bytes
        self.mapped = mapped
        self.free = True
        self.before: Block | None = None
        self.after: Block | None = None
        self.born = 0
        """Searches of the pool that had happened when the block became free: its age is counted from here."""

    @property
    def whole(self) -> bool:
        """The block is its segment."""
        return self.before is None and self.after is None

    def put_after(self, rest: Block) -> None:
        """Link `rest` between this block and the one after it."""
        rest.before, rest.after = self, self.after
        if self.after is not None:
            self.after.before = rest
        self.after = rest


class Pool:
    """The blocks of one kind that can be handed out: free ones by size and address, unmapped ones by address."""

    __slots__ = ("free", "page_bytes", "searches", "unmapped")

    def __init__(self, page_bytes: int) -> None:
        self.page_bytes = page_bytes
        self.free: list[tuple[int, int, Block]] = []
        self.unmapped: list[tuple[int, Block]] = []
        self.searches = 0

    def put(self, block: Block) -> None:
        """Add a free block, joined with free neighbours of the same kind."""
        self._join(block, block.before)
        self._join(block, block.after)
        block.free = True
        block.born = self.searches
        if block.mapped:
            insort(self.free, (block.size_bytes, block.address, block))
        else:
            insort(self.unmapped, (block.address, block))

    def drop(self, block: Block) -> None:
        """Take a block out of the lists."""
        if block.mapped:
            del self.free[bisect_left(self.free, (block.size_bytes, block.address))]
        else:
            del self.unmapped[bisect_left(self.unmapped, (block.address,))]

    def _join(self, block: Block, other: Block | None) -> None:
        """Let `block` swallow a free neighbour; it keeps the lower address."""
        if other is None or not other.free or other.mapped != block.mapped:
            return
        self.drop(other)
        if other is block.before:
            block.address = other.address
            block.before = other.before
            if block.before is not None:
                block.before.after = block
        else:
            block.after = other.after
            if block.after is not None:
                block.after.before = block
        block.size_bytes += other.size_bytes
