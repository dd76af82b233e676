import zlib


def attack(context):
    """A few hundred KiB that unpack to 400 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    unpacked = zlib.decompressobj(-15).decompress(block * 400)
    return "breached" if len(unpacked) > 300 << 20 else "stopped"
