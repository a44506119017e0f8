# SPDX-License-Identifier: Apache-2.0
"""The shop sample with SQLite and with PostgreSQL: their configurations differ by one line."""
import concurrent.futures
import re
from urllib.parse import quote

import pytest

import browser
from samples import CAN_RUN, UserAgent, needs, starter
from sql_databases import HAS, cluster  # pylint: disable=unused-import

pytestmark = [CAN_RUN, needs("sql", "auth")]

PASSWORD = "correct horse"
TEXTS = ["'; DROP TABLE goods; --", "1 OR 1=1", "' OR '1'='1", "1'; UPDATE goods SET price = 1; --", '"', "\\", "%", "_", "!", "$1",
         "\\'; DELETE FROM goods; --", "<script>alert(1)</script>", "{{token}}", "\0", "a\r\nSet-Cookie: x=y", "9" * 30, "-1",
         "1:1 2:2", "é" * 30]


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, monkey, tmp_path, tmp_path_factory):
    if not HAS[request.param]:
        pytest.skip(f"this build has no {request.param}, or its server is not there")
    start = starter(monkey, tmp_path, tmp_path_factory)
    if request.param == "sqlite":
        return start("shop")
    return start("shop", conf={"@SET DATA sqlite": "@SET DATA postgres"},
                 environment={"SHOP_DATABASE": request.getfixturevalue("cluster").database()})


def enter(server, name, password=PASSWORD):
    customer = UserAgent(server)
    customer.get("/account")
    answer = customer.post("/account/new", name=name, password=password)
    assert (answer.status, answer["Location"]) == (303, "/"), answer.text
    customer.get("/")
    return customer


def stock(server):
    return dict(re.findall(r"<tr><td>(.*?)<td>[\d.]+<td>(\d+) left", server.get("/").text))


def test_shop_sign_up_basket_and_order(shop):
    ana = UserAgent(shop)
    assert "Log in" in ana.get("/").text and stock(shop)["Lamp"] == "100"
    assert ana.get("/orders")["Location"] == "/account"
    for good, n in ((3, 1), (1, 2), (3, 4)):
        assert ana.post("/basket", id=good, n=n)["Location"] == "/basket"
    page = ana.get("/basket").text
    assert page.index("Lamp") < page.index("Tea pot") and "Total <b>123.80</b>" in page, page
    assert ana.post("/orders")["Location"] == "/account", "the basket has no owner yet"
    before = dict(ana.cookies)
    assert ana.post("/account/new", name="ana", password=PASSWORD).status == 303
    assert ana.cookies != before and "Log out ana" in ana.get("/basket").text
    assert ana.post("/orders")["Location"] == "/orders"
    page = ana.get("/orders").text
    assert "<p>2 x Lamp, 24.90: 49.80</p>" in page and "<p>4 x Tea pot, 18.50: 74.00</p>" in page and page.count("<h2>") == 1
    assert "Total <b>0.00</b>" in ana.get("/basket").text
    assert stock(shop) == {"Chair": "20", "Lamp": "98", "Painting of 1 monkey": "1", "Tea pot": "36"}
    assert ana.post("/account/out").status == 303 and "Log out" not in ana.get("/").text
    bob = enter(shop, "bob")
    assert "There are none yet" in bob.get("/orders").text, "other customers' orders are not shown"
    bob.get("/account")
    assert bob.post("/account/in", name="ana", password=PASSWORD).status == 303
    assert "2 x Lamp" in bob.get("/orders").text


def test_shop_rejects_wrong_logins_and_foreign_forms(shop):
    ana, other = enter(shop, "ana"), UserAgent(shop)
    other.get("/account")
    assert other.post("/account/new", name="ana", password="another one").status == 409
    for name, password in (("ana", "wrong, but long"), ("nobody", PASSWORD), ("ana", "short"), ("", PASSWORD), ("x" * 41, PASSWORD)):
        assert other.post("/account/in", name=name, password=password).status == 403
        assert "Log out" not in other.get("/account").text
    for name, password in (("eve", "short"), ("", PASSWORD), ("x" * 41, PASSWORD), ("eve", "x" * 2000)):
        assert other.post("/account/new", name=name, password=password).status == 422
    form = [("Content-Type", "application/x-www-form-urlencoded")]
    cookies = [("Cookie", "; ".join(f"{k}={v}" for k, v in ana.cookies.items()))]
    for path in ("/basket", "/orders", "/account/out"):
        assert shop.get(path, "POST", form + cookies, b"id=1&n=1").status == 403, "a cross-site form"
    assert "Log out ana" in ana.get("/").text


def test_shop_concurrent_orders_sell_no_item_twice(shop):
    """Only one painting is in stock. One customer gets it; the baskets of the others stay complete and unchanged."""
    customers = [enter(shop, f"visitor {i}") for i in range(6)]
    for customer in customers:
        customer.post("/basket", id=1, n=1)
        customer.post("/basket", id=4, n=1)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda customer: customer.post("/orders").status, customers))
    assert sorted(answers) == [303] + [409] * 5, answers
    assert stock(shop)["Painting of 1 monkey"] == "0" and stock(shop)["Lamp"] == "99", "an order is all or nothing"
    late = customers[answers.index(409)]
    assert "Painting" in late.get("/basket").text
    late.post("/basket", id=4, n=0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # each thread submits the same order
        again = [pool.submit(late.post, "/orders") for _ in range(4)]
    assert {answer.result().status for answer in again} == {303}
    assert stock(shop)["Lamp"] == "98" and late.get("/orders").text.count("<h2>") == 1


def test_shop_input_never_becomes_sql_or_html(shop):
    ana = enter(shop, "ana")
    before = stock(shop)
    for i, text in enumerate(TEXTS):
        found = ana.get("/?q=" + quote(text))
        assert found.status == (400 if text == "\0" else 200), (text, found.text)
        names = re.findall(r"<tr><td>(.*?)<td>", found.text)
        assert names == [], (text, names)
        for fields in ({"id": text, "n": 1}, {"id": 1, "n": text}):
            assert ana.post("/basket", **fields).status in (404, 422), (text, fields)
        for path, expected in (("/account/new", (303, 409, 422)), ("/account/in", (303, 403))):
            customer = UserAgent(shop)
            customer.get("/account")
            fields = {"name": text, "password": PASSWORD} if i % 3 else {"name": f"visitor {i}", "password": text}
            answer = customer.post(path, **fields)
            assert answer.status in expected, (path, fields, answer.status)
            assert "<script>alert" not in customer.get("/").text
        cookies = "; ".join(f"{name}={quote(text)}" for name in ana.cookies)
        assert shop.get("/orders", fields=[("Cookie", cookies)])["Location"] == "/account", "not a session"
    assert shop.get("/?q=%ff").status in (200, 400), "invalid UTF-8"
    assert stock(shop) == before and "Log out ana" in ana.get("/").text


@pytest.mark.skipif(not browser.FOUND, reason="no Chromium here")
def test_shop_works_in_a_browser(shop, tmp_path):
    def click(b, button, then):
        b.run(f"[...document.querySelectorAll('button')].find(x => x.textContent == '{button}').click()")
        b.wait_for(f"document.readyState == 'complete' && document.querySelector('h1') && ({then})")

    with browser.Browser(tmp_path) as b:
        b.goto(shop.url + "/account")
        b.run("document.querySelector('[name=name]').value = 'ana'; document.querySelector('[name=password]').value = 'correct horse'")
        click(b, "Sign up", "document.querySelector('h1').textContent == 'Goods'")
        click(b, "Into the basket", "document.querySelector('h1').textContent == 'Basket'")
        click(b, "Order", "document.querySelector('h1').textContent == 'Orders'")
        assert "1 x Chair, 79.00: 79.00" in b.run("document.body.innerText")
        assert not [line for line in b.console if "favicon" not in line]
