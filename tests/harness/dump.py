"""Dumps of Redis's values, made by hand: with the checksum that belongs to them, whatever they hold."""

VERSION = 10
# Of CRC-64 with the polynomial of Jones, reflected.
POLYNOMIAL = 0x95AC9329AC4BC9B5


def _row(byte):
    for _ in range(8):
        byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = [_row(byte) for byte in range(256)]


def signed(body):
    """A dump of this type and value."""
    dump, crc = body + VERSION.to_bytes(2, "little"), 0
    for byte in dump:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return dump + crc.to_bytes(8, "little")


def length(number):
    """A length as it stands before a string or the elements of a collection."""
    return b"\x80" + number.to_bytes(4, "big")


def string(text):
    """A string inside a dump."""
    return length(len(text)) + text


def compressed(copies):
    """A string of 264 bytes for each of the copies, which take three bytes each."""
    run = b"\x00a" + b"\xe0\xff\x00" * copies
    return b"\xc3" + length(len(run)) + length(1 + 264 * copies) + run
