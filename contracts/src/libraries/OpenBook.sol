// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The open positions of one agent, packed
/// @notice The first word counts the positions opened (bits 0..31) and closed (bits 32..63). Their difference is the
/// number of entries, and the word never returns to zero. Then entries of 48 bits follow: four in the first word, five
/// in each further one. An entry is a position id (32 bits) and a token index (16 bits); one agent has one open
/// position per token.
library OpenBook {
    struct Book {
        mapping(uint256 word => uint256) words;
    }

    uint256 private constant ENTRY_BITS = 48;
    uint256 private constant ID_MASK = type(uint32).max;
    uint256 private constant ENTRY_MASK = type(uint48).max;
    uint256 private constant FIRST = 4;
    uint256 private constant PER_WORD = 5;

    function opened(Book storage book) internal view returns (uint256) {
        return book.words[0] & ID_MASK;
    }

    function closed(Book storage book) internal view returns (uint256) {
        return (book.words[0] >> 32) & ID_MASK;
    }

    function length(Book storage book) internal view returns (uint256) {
        return _length(book.words[0]);
    }

    /// @return id 0 when no open position has this token index
    function idOf(Book storage book, uint256 tokenIndex) internal view returns (uint256 id) {
        uint256 count = length(book);
        for (uint256 i; i < count; ++i) {
            uint256 entry = _entryAt(book, i);
            if (entry >> 32 == tokenIndex) return entry & ID_MASK;
        }
    }

    function ids(Book storage book) internal view returns (uint256[] memory list) {
        list = new uint256[](length(book));
        for (uint256 i; i < list.length; ++i) {
            list[i] = _entryAt(book, i) & ID_MASK;
        }
    }

    function add(Book storage book, uint32 id, uint16 tokenIndex) internal {
        uint256 head = book.words[0];
        _write(book, _length(head), uint256(tokenIndex) << 32 | id);
        book.words[0] += 1;
    }

    /// @dev The last entry takes the place of the removed one.
    function remove(Book storage book, uint256 id) internal {
        uint256 last = length(book) - 1;
        uint256 at;
        while (_entryAt(book, at) & ID_MASK != id) ++at;

        if (at != last) _write(book, at, _entryAt(book, last));
        _write(book, last, 0);
        book.words[0] += 1 << 32;
    }

    function _entryAt(Book storage book, uint256 index) private view returns (uint256) {
        (uint256 word, uint256 shift) = _place(index);
        return (book.words[word] >> shift) & ENTRY_MASK;
    }

    function _write(Book storage book, uint256 index, uint256 entry) private {
        (uint256 word, uint256 shift) = _place(index);
        book.words[word] = book.words[word] & ~(ENTRY_MASK << shift) | entry << shift;
    }

    function _place(uint256 index) private pure returns (uint256 word, uint256 shift) {
        if (index < FIRST) return (0, 64 + index * ENTRY_BITS);
        index -= FIRST;
        return (1 + index / PER_WORD, (index % PER_WORD) * ENTRY_BITS);
    }

    function _length(uint256 head) private pure returns (uint256) {
        return (head & ID_MASK) - ((head >> 32) & ID_MASK);
    }
}
