"""The allocator itself: how a request is met, what is given back when memory is short, and how segments expand.

    cached block that fits best  ->  new segment (or mapped pages)  ->  give unused ones back and try again  ->  none

Written from the behaviour of c10/cuda/CUDACachingAllocator.cpp (https://github.com/pytorch/pytorch), for one stream
and without CUDA graphs. Addresses of segments only rise here, as nobody can know which the driver would give; they
decide nothing but which of two free blocks of one size is taken.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from gpufit.memory.allocator.blocks import Block, Pool
from gpufit.memory.allocator.settings import (
    BLOCK_BYTES,
    LARGE_SEGMENT_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    Settings,
    rounded_size,
    segment_size,
)

ADDRESS_SPACE_BYTES = 2**60
"""What an expandable segment may grow to. Torch reserves 9/8 of the card and then begins another segment, which maps
no more memory than the first would have."""


class Allocator:
    """The allocator's state. Counters are bytes; each is torch's counter of the same name."""

    def __init__(self, settings: Settings, capacity_bytes: int | None = None) -> None:
        self.settings = settings
        self.capacity_bytes = capacity_bytes
        self.small = Pool(SMALL_SEGMENT_BYTES)
        self.large = Pool(LARGE_SEGMENT_BYTES)
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self.segments = 0
        """Times that the driver gave memory: a segment, or a range mapped into an expandable one."""
        self.retries = 0
        """Times that everything unused was given back, for want of memory, before trying once more."""
        self._next_address = 0
        self._plain = not any(divisions > 1 for divisions in settings.roundup_power2_divisions)
        self._garbage_from: int | None = None
        if settings.garbage_collection_threshold is not None and capacity_bytes is not None:
            self._garbage_from = int(settings.garbage_collection_threshold * capacity_bytes)
        if settings.expandable_segments:
            for pool in (self.small, self.large):
                pool.put(Block(pool, 0, ADDRESS_SPACE_BYTES, mapped=False))

    def allocate(self, requested_bytes: int) -> Block | None:
        """Hand out a block of at least so many bytes (at least one); None when memory has run out."""
        if self._plain:
            size = -(-requested_bytes // BLOCK_BYTES) * BLOCK_BYTES
        else:
            size = rounded_size(requested_bytes, self.settings)
        pool = self.small if size <= SMALL_BYTES else self.large
        block = self._cached(pool, size) or self._new(pool, size)
        if block is None:
            return None
        rest_bytes = block.size_bytes - size
        if rest_bytes and self._splits(pool, size, rest_bytes):
            rest = Block(pool, block.address + size, rest_bytes)
            block.size_bytes = size
            block.put_after(rest)
            rest.born = pool.searches
            insort(pool.free, (rest_bytes, rest.address, rest))
        block.free = False
        self.allocated_bytes += block.size_bytes
        return block

    def free(self, block: Block) -> None:
        """Take a block back into the pool it came from."""
        self.allocated_bytes -= block.size_bytes
        block.pool.put(block)

    def empty_cache(self) -> None:
        """Give every unused segment, or every wholly unused page, back to the driver."""
        for pool in (self.large, self.small):
            for _, _, block in pool.free[:]:
                if self.settings.expandable_segments:
                    self._unmap(pool, block)
                elif block.whole:
                    self._release(pool, block)

    def _splits(self, pool: Pool, size: int, rest_bytes: int) -> bool:
        if pool is self.small or self.settings.expandable_segments:
            return rest_bytes >= BLOCK_BYTES
        limit = self.settings.max_split_bytes
        return rest_bytes > SMALL_BYTES and (limit is None or size < limit)

    def _cached(self, pool: Pool, size: int) -> Block | None:
        """The free block that fits best, taken out of the pool."""
        if self._garbage_from is not None:
            pool.searches += 1
        free = pool.free
        index = bisect_left(free, (size,))
        if index == len(free):
            return None
        if self.settings.expandable_segments:
            index = _least_room_to_grow(free, index)
        block = free[index][2]
        limit = self.settings.max_split_bytes
        if limit is not None:
            if size < limit <= block.size_bytes:
                return None
            if size >= limit and block.size_bytes >= size + self.settings.max_non_split_rounding_bytes:
                return None
        del free[index]
        return block

    def _new(self, pool: Pool, size: int) -> Block | None:
        """A free block of at least `size` from the driver, outside the pool; None when memory has run out."""
        self._collect_garbage()
        block = self._take(pool, size)
        if block is None and self._release_oversize(pool, size):
            block = self._take(pool, size)
        if block is None:
            self.empty_cache()
            self.retries += 1
            block = self._take(pool, size)
        return block

    def _take(self, pool: Pool, size: int) -> Block | None:
        if self.settings.expandable_segments:
            return self._expand(pool, size)
        taken = segment_size(size)
        if not self._reserve(taken):
            return None
        block = Block(pool, self._next_address, taken)
        self._next_address += taken
        return block

    def _reserve(self, size: int) -> bool:
        if self.capacity_bytes is not None and self.reserved_bytes + size > self.capacity_bytes:
            return False
        self.reserved_bytes += size
        self.segments += 1
        return True

    def _release(self, pool: Pool, block: Block) -> None:
        pool.drop(block)
        self.reserved_bytes -= block.size_bytes

    def _release_oversize(self, pool: Pool, size: int) -> bool:
        """Give back the unsplittable block that would do for `size`, else the largest until they add up to it.

        A free block of at least `size` is an unsplittable one: any other would have been handed out.
        """
        limit = self.settings.max_split_bytes
        if limit is None:
            return False
        index = bisect_left(pool.free, (size,))
        if index < len(pool.free):
            self._release(pool, pool.free[index][2])
            return True
        released = 0
        while released < size and pool.free and pool.free[-1][0] >= limit:
            released += pool.free[-1][0]
            self._release(pool, pool.free[-1][2])
        return released >= size

    def _collect_garbage(self) -> None:
        """Give back unused large segments, the older half of them first, once too much is reserved."""
        if self._garbage_from is None or self.reserved_bytes <= self._garbage_from:
            return
        wanted = self.reserved_bytes - self._garbage_from
        searches = self.large.searches
        left = [block for _, _, block in self.large.free if block.whole]
        while wanted > 0 and left:
            mean_age = sum(searches - block.born for block in left) / len(left)
            for block in left:
                if searches - block.born >= mean_age:
                    wanted -= block.size_bytes
                    self._release(self.large, block)
            left = [block for block in left if searches - block.born < mean_age]

    def _expand(self, pool: Pool, size: int) -> Block | None:
        """Map pages at the lowest address where `size` has room, behind a free block where there is one."""
        block = _lowest_room(pool, size)
        if not block.mapped and not self._map(pool, block, min(size, block.size_bytes)):
            return None
        while block.size_bytes < size:
            after = block.after
            assert after is not None  # _lowest_room saw that what follows is unmapped or free up to `size`.
            if not self._map(pool, after, min(size - block.size_bytes, after.size_bytes)):
                return None
            block = after
        pool.drop(block)
        return block

    def _map(self, pool: Pool, block: Block, size: int) -> bool:
        """Back the first `size` bytes of an unmapped block, in whole pages; False when memory has run out."""
        mapped = -(-size // pool.page_bytes) * pool.page_bytes
        if not self._reserve(mapped):
            return False
        pool.drop(block)
        block.mapped = True
        if mapped < block.size_bytes:
            rest = Block(pool, block.address + mapped, block.size_bytes - mapped, mapped=False)
            block.size_bytes = mapped
            block.put_after(rest)
            insort(pool.unmapped, (rest.address, rest))
        pool.put(block)
        return True

    def _unmap(self, pool: Pool, block: Block) -> None:
        """Give back the pages that lie wholly inside a free block."""
        page = pool.page_bytes
        end = block.address + block.size_bytes
        first, last = -(-block.address // page) * page, end // page * page
        if last <= first:
            return
        pool.drop(block)
        block.size_bytes = last - block.address
        if last < end:
            behind = Block(pool, last, end - last)
            block.put_after(behind)
            behind.born = pool.searches
            insort(pool.free, (behind.size_bytes, behind.address, behind))
        if first > block.address:
            gone = Block(pool, first, last - first, mapped=False)
            block.size_bytes = first - block.address
            block.put_after(gone)
            insort(pool.free, (block.size_bytes, block.address, block))
            block = gone
        block.mapped = False
        pool.put(block)
        self.reserved_bytes -= last - first


def _least_room_to_grow(free: list[tuple[int, int, Block]], index: int) -> int:
    """In an expandable segment a block counts with the unmapped room behind it, so its end is spared for last."""
    while index + 1 < len(free) and _room(free[index + 1][2]) < _room(free[index][2]):
        index += 1
    return index


def _room(block: Block) -> int:
    after = block.after
    return block.size_bytes + (after.size_bytes if after is not None and not after.mapped else 0)


def _lowest_room(pool: Pool, size: int) -> Block:
    """The first of the blocks, free or unmapped and side by side, that have room for `size` at the lowest address."""
    for _, start in pool.unmapped:
        first = start.before if start.before is not None and start.before.free else start
        room = 0
        block: Block | None = first
        while room < size and block is not None and block.free:
            room += block.size_bytes
            block = block.after
        if room >= size:
            return first
    raise AssertionError("an expandable segment has room for every size below 2**60 bytes")
