"""A file of countries in the format MMDB, as operators have it."""

from __future__ import annotations

from ipaddress import ip_network


def mmdb(networks: dict[str, str]) -> bytes:
    """A file of countries in the format MMDB, version 2.0, for IPv4."""
    nodes: list[list[int]] = [[-1, -1]]
    data, places = b"", dict[str, int]()
    for text, code in networks.items():
        network = ip_network(text)
        if code not in places:
            places[code] = len(data)
            data += b"\xe1\x47country\xe1\x48iso_code\x42" + code.encode()
        at = 0
        for depth in range(network.prefixlen):
            bit = int(network.network_address) >> (31 - depth) & 1
            if depth == network.prefixlen - 1:
                nodes[at][bit] = -2 - places[code]
            else:
                if nodes[at][bit] < 0:
                    nodes.append([-1, -1])
                    nodes[at][bit] = len(nodes) - 1
                at = nodes[at][bit]
    size = len(nodes)
    records = [size if one == -1 else one if one >= 0 else size + 16 + (-2 - one) for node in nodes for one in node]
    tree = b"".join(record.to_bytes(3, "big") for record in records)
    about = {
        b"node_count": b"\xc2" + size.to_bytes(2, "big"), b"record_size": b"\xa1\x18", b"ip_version": b"\xa1\x04",
        b"database_type": b"\x44Test", b"binary_format_major_version": b"\xa1\x02",
        b"binary_format_minor_version": b"\xa0", b"build_epoch": b"\x01\x02\x01",
        b"languages": b"\x00\x04", b"description": b"\xe0",
    }  # fmt: skip
    fields = b"".join(bytes([0x40 + len(name)]) + name + value for name, value in about.items())
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + bytes([0xE0 + len(about)]) + fields
