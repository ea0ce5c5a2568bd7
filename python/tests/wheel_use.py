"""What wheel_check.py runs in an empty environment: a cluster is started, and documents are written, read and visited.

    wheel_use.py [ADDRESS]      with an address: on that cluster, which has the document type below, and no other is started
"""

import asyncio
import contextlib
import pathlib
import re
import sys

SCHEMA = "document item { field name type string {} field price type int {} field tags type array<string> {} }"
NUMBER_OF_DOCUMENTS = 500
# What every system with glibc has; the wheel brings all else.
SYSTEM_LIBRARIES = re.compile(r"(ld-linux-(x86-64|aarch64)|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+)(-[\d.]+)?\.so[\d.]*")


def mapped_libraries():
    lines = [line.split(maxsplit=5) for line in pathlib.Path("/proc/self/maps").read_text().splitlines()]
    return {pathlib.Path(line[5]) for line in lines if len(line) > 5 and ".so" in line[5]}


def import_package():
    """Imports the package, and sees that it and each library that its extension needs come from this environment."""
    before = mapped_libraries()
    import fjord
    from fjord import _core

    environment = pathlib.Path(sys.prefix).resolve()
    package = pathlib.Path(fjord.__file__).resolve().parent
    assert environment in package.parents, f"fjord is in {package}, not in {environment}"
    extension = pathlib.Path(_core.__file__).resolve()
    assert extension.parent == package, f"the extension is {extension}, not in {package}"
    assert extension in mapped_libraries()
    foreign = [file for file in mapped_libraries() - before
               if environment not in file.resolve().parents and file.parent.name != "lib-dynload"
               and not SYSTEM_LIBRARIES.fullmatch(file.name)]
    assert not foreign, f"libraries from outside the environment: {foreign}"
    return fjord


def use(fjord, client):
    written = client.put("id:shop:item::1", {"name": "tea", "price": 3, "tags": ["hot"]})
    document = client.get("id:shop:item::1")
    assert document == {"name": "tea", "price": 3, "tags": ["hot"]}, document
    assert document.version == written.version
    stats = client.feed((f"id:many:item::{number}", {"price": number}) for number in range(NUMBER_OF_DOCUMENTS))
    assert (stats.ok, stats.failed) == (NUMBER_OF_DOCUMENTS, 0), stats
    prices = [document["price"] for document in client.visit('id.namespace == "many"', type="item")]
    assert sorted(prices) == list(range(NUMBER_OF_DOCUMENTS)), prices
    client.remove("id:shop:item::1")
    try:
        client.get("id:shop:item::1")
    except fjord.NotFound:
        return
    raise AssertionError("the document was not removed")


async def price_of(fjord, address, name):
    async with fjord.AsyncClient(address) as client:
        return (await client.get(name))["price"]


def main():
    fjord = import_package()
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            address = sys.argv[1]
        else:
            from fjord.testing import LocalCluster
            address = stack.enter_context(LocalCluster(storage=2, schemas=SCHEMA)).address
        with fjord.Client(address) as client:
            use(fjord, client)
        assert asyncio.run(price_of(fjord, address, "id:many:item::7")) == 7
    print(f"Python {sys.version.split()[0]}: the wheel stores, reads and visits documents", flush=True)


if __name__ == "__main__":
    main()
