from __future__ import annotations

from plait.catalog import Catalog, Link, Site
from plait.cost.network import LOCAL, Network


def network(*links: Link) -> Network:
    return Network(Catalog(sites={name: Site(name.upper()) for name in "abcd"}, links=links))


def test_without_sites_there_is_one() -> None:
    local = Network(Catalog())
    assert list(local.sites) == [LOCAL]
    assert local.route(LOCAL, LOCAL) == ()


def test_without_links_every_site_reaches_every_other() -> None:
    assert network().route("A", "D") == (("A", "D"),)


def test_with_links_data_takes_the_fastest_way() -> None:
    slow = Link("a", "c", latency_us=100)
    detour = Link("a", "b", latency_us=20), Link("b", "c", latency_us=30)
    assert network(slow, *detour).route("A", "C") == (("A", "B"), ("B", "C"))
    assert network(slow).route("A", "C") == (("A", "C"),)


def test_links_go_one_way() -> None:
    one_way = network(Link("a", "b"))
    assert one_way.route("B", "A") is None
    assert one_way.route("A", "D") is None
