# SPDX-License-Identifier: Apache-2.0
"""The live page of the metrics plugin, in a browser."""
import gzip
import re
import signal
import socket

import pytest

import browser
from metering import Stream, history, starter, status, taken
from proc import wait_until


@pytest.fixture
def start(monkey, site):
    return starter(monkey, site)


def text_of(reply):
    """Returns the text of a part of the page, which the server sends compressed."""
    assert reply["Content-Encoding"] == "gzip"
    return gzip.decompress(reply.body).decode()


def test_live_page_has_strict_security_policy(start):
    server = start()
    page = server.get("/live")
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert page["X-Content-Type-Options"] == "nosniff" and page["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", text_of(page))
    for part, kind in re.findall(r'(?:href|src)="(\?(\w+))"', text_of(page)):
        reply = server.get("/live" + part)
        assert reply.status == 200 and reply["Content-Type"].startswith({"style": "text/css", "script": "text/javascript"}[kind])
        assert "http://" not in text_of(reply).replace("http://www.w3.org/2000/svg", "") and "https://" not in text_of(reply)
    assert {part for part, _ in re.findall(r'"(\?(\w+))"', text_of(page))} == {"?style", "?script"}
    assert server.get("/live?other").body == page.body


@pytest.fixture
def page(tmp_path):
    if not browser.FOUND:
        pytest.skip("no chromium here")
    with browser.Browser(tmp_path) as found:
        yield found


def number(text):
    match = re.match(r"([\d.,]+)", text)
    return float(match[1].replace(",", "")) if match else None


LOOK = [pytest.param(dict(), id="light"), pytest.param(dict(dark=True), id="dark"),
        pytest.param(dict(width=360, height=740, mobile=True), id="phone")]


@pytest.mark.parametrize("look", LOOK)
def test_live_page_fits_window_and_follows_color_scheme(start, page, look):
    server = start(workers=2)
    page.look(**look)
    page.goto(server.url + "/live")
    page.wait_for("!document.querySelector('main').hidden")
    for _ in range(30):
        server.get("/")
    page.wait_for("document.querySelectorAll('#histogram rect').length > 0")
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "no horizontal scrolling"
    ground, ink = page.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    bright = [sum(map(int, re.findall(r"\d+", color)[:3])) for color in (ground, ink)]
    assert (bright[0] < 150 < 600 < bright[1]) if look.get("dark") else (bright[0] > 600 > 150 > bright[1])
    assert not page.console


def test_live_page_bars_and_tables_fit_a_phone(start, page):
    server = start(workers=2)
    page.look(width=390, height=800, mobile=True)
    page.goto(server.url + "/live")
    for _ in range(30):
        server.get("/")
    page.wait_for("document.querySelector('#methods svg .bar')?.getBoundingClientRect().width > 100")
    assert page.run("document.querySelector('#tile-latency h2').textContent") == "Server time, p99"
    gap = page.run("(() => { const row = document.querySelector('#methods tbody tr'), range = document.createRange();"
                   " range.selectNodeContents(row.cells[2]);"
                   " return range.getBoundingClientRect().left - row.querySelector('.bar').getBoundingClientRect().right })()")
    assert 0 <= gap < 80, "a full bar ends before its number"
    wide = "document.querySelector('.wide:has(#workers)')"
    assert page.run(f"{wide}.scrollWidth > {wide}.clientWidth"), "the workers table scrolls"
    assert page.run("document.documentElement.scrollWidth <= 390")
    assert page.run(f"getComputedStyle({wide}).backgroundAttachment") == "local, local, scroll, scroll", "the scroll shadow"


def test_live_page_latency_scale_tolerates_outliers(start, page):
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.run("source.close()")
    page.run("""{
        const end = latest.now_ms, h = {now_ms: [], durations: [], histogram: []};
        for (const name of [...CLASSES, "requests", "bytes", "connections", "memory", "p50", "p90", "p99", "p999"])
            h[name] = [];
        for (let second = 20; second > 0; second--) {
            h.now_ms.push(end - 1000 * second);
            for (const name in h)
                if (!["now_ms", "durations", "histogram"].includes(name))
                    h[name].push(name === "p99" ? (second === 20 ? 5e6 : 100 + 100 * (second % 2)) : name === "connections" ? 1234 : 1);
        }
        const event = latest;
        takeHistory(h);
        takeEvent(event);
        show();
    }""")
    assert page.run("document.querySelector('#tile-connections .scale').textContent") == "0 to 1,234"
    assert page.run("document.querySelector('#tile-latency .scale').textContent") == "100 µs to 5.00 s, log"
    heights = page.run("document.querySelector('#tile-latency .stroke').getAttribute('d').slice(1).split('L')"
                       ".map(xy => Number(xy.split(',')[1])).slice(1)")
    assert max(heights) - min(heights) > 4, "100 and 200 µs are distinguishable beside 5 s"
    assert page.run("document.querySelector('#latency svg title').textContent").startswith("p50, last five minutes, ")
    assert not page.console


def test_live_page_upstream_table_fits_a_phone(monkey, page, site):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = monkey(plugins=["metrics", "proxy"], sections=f"""
            [UPSTREAM]
                Name app
                Server 127.0.0.1:{closed.getsockname()[1]}
            [METRICS]
                Live /live
            [ROUTES]
                /app/* proxy http://app
                /php/* proxy http://unix:/run/php/a-long-name-of-a-pool-of-php.sock
                /* static
        """)
        server.get("/app/")
        page.look(width=390, height=800, mobile=True)
        page.goto(server.url + "/live")
        page.wait_for("document.querySelectorAll('#upstreams tbody tr').length")
        seen = page.run("[...document.querySelectorAll('#upstreams thead th')].filter(th =>"
                        " th.getBoundingClientRect().right <= 390 - 20).map(th => th.textContent)")
        assert seen[:5] == ["Server", "State", "Busy", "Latency", "Failures"], seen
        cells = page.run("[...document.querySelectorAll('#upstreams tbody tr')[0].cells].map(td => td.textContent)")
        heads = page.run("[...document.querySelectorAll('#upstreams thead th')].map(th => th.textContent)")
        row = dict(zip(heads, cells))
        assert row["Upstream"] == "app" and row["Failures"] == "1" and row["Limit"] == "none", row


def test_live_page_shows_processor_time(start, page):
    server = start(workers=2)
    page.goto(server.url + "/live")
    page.wait_for("/^CPU \\d+ %$/.test(document.querySelector('#cpu').textContent)")
    page.run("source.close()")
    page.run("""{
        const event = structuredClone(latest);
        event.now_ms += 1000;
        event.workers[0].cpu_us += 250e3;
        event.workers[1].cpu_us += 500e3;
        takeEvent(event);
        show();
    }""")
    assert page.run("document.querySelector('#cpu').textContent") == "CPU 75 %"
    assert page.run("[...document.querySelectorAll('#workers tbody tr')].map(r => r.cells[3].textContent)") == ["25 %", "50 %"]


NEXT_EVENT = """{
    const event = structuredClone(latest);
    event.now_ms += 1000;
    %s
    takeEvent(event);
    show();
}"""


def test_live_page_processor_time_ignores_worker_without_report(start, page):
    """A worker is missing from an event while it measures itself. All its CPU time since its start is not that of one second."""
    server = start(workers=2)
    page.goto(server.url + "/live")
    page.wait_for("/^CPU \\d+ %$/.test(document.querySelector('#cpu').textContent)")
    page.run("source.close()")
    output = "document.querySelector('#tile-cpu output').textContent"
    page.run(NEXT_EVENT % "for (const w of event.workers) w.cpu_us += 250e3;")
    assert page.run(output) == "50 %"
    page.run(NEXT_EVENT % "event.workers[0].cpu_us += 9e9; delete event.workers[0].cpu_us; event.workers[1].cpu_us += 100e3;")
    assert page.run(output) == "10 %"
    page.run(NEXT_EVENT % "event.workers[0].cpu_us = 9e9; event.workers[1].cpu_us += 200e3;")
    assert page.run(output) == "20 %"
    assert page.run("document.querySelector('#tile-cpu .scale').textContent") == "0 to 50 %"
    page.run(NEXT_EVENT % "for (const w of event.workers) delete w.cpu_us;")
    assert page.run(output) == "–"
    assert not page.console


@pytest.mark.parametrize("look", LOOK)
def test_live_page_graphs_have_scales_with_units(start, page, look):
    server = start()
    page.look(**look)
    page.goto(server.url + "/live")
    for _ in range(30):
        server.get("/")
    page.wait_for("document.querySelector('#histogram .top') !== null")
    assert re.fullmatch(r"0 to \d+ requests", page.run("document.querySelector('#histogram .top').textContent"))
    scale = {name: page.run(f"document.querySelector('#tile-{name} .scale').textContent")
             for name in ("requests", "connections", "sent", "cpu", "memory", "errors")}
    assert re.fullmatch(r"0 to [\d.,]+ /s", scale["requests"]) and scale["errors"] == "0 to 0 /s", scale
    assert re.fullmatch(r"0 to [\d.]+ K?B/s", scale["sent"]) and re.fullmatch(r"0 to \d+ %", scale["cpu"]), scale
    assert re.fullmatch(r"0 to [\d.]+ MB", scale["memory"]) and re.fullmatch(r"0 to \d", scale["connections"]), scale
    axes = page.run("[...document.querySelectorAll('.tile .axis')].map(a => { const [from, to] = a.children, box = a.parentNode"
                    ".querySelector('svg').getBoundingClientRect(), left = from.getBoundingClientRect(), right = to.getBoundingClientRect();"
                    " return [a.textContent, Math.round(left.left - box.left), Math.round(right.right - box.right), left.right < right.left] })")
    assert axes == [["5 min ago now", 0, 0, True]] * 7, axes
    assert page.run("document.querySelectorAll('#tile-requests .grid').length") == 4, "one line for each full minute"
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert not page.console


def test_live_page_shows_configuration_that_needs_confirmation(start, page):
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.run("source.close()")
    assert page.run("document.querySelector('#generation').textContent") == "configuration 1"
    assert page.run("document.querySelector('#problems').hidden")
    page.run(NEXT_EVENT % "event.generation = 2; event.confirm_at = event.now + 40;")
    assert page.run("document.querySelector('#generation').textContent") == "configuration 2"
    assert page.run("document.querySelector('#problems').textContent") == \
        "the previous configuration returns in 40 s without `monkey confirm`."
    page.run(NEXT_EVENT % "event.confirm_at = 0;")
    assert page.run("document.querySelector('#problems').hidden")


def test_live_page_shows_workers_whose_memory_is_scarce(start, page):
    """The plugin memory counts them."""
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.run("source.close()")
    page.run(NEXT_EVENT % "event.memory = [{limit: 4e8, used: 3.9e8, releasing: 1, shedding: 2, paused: 1}];")
    assert page.run("document.querySelector('#problems').textContent") == "workers that reject requests, because their memory is scarce: 3."
    page.run(NEXT_EVENT % "event.memory = [{limit: 4e8, used: 3.9e8, releasing: 1, shedding: 0, paused: 0}];")
    assert page.run("document.querySelector('#problems').hidden")


@pytest.mark.parametrize("look", LOOK)
def test_live_page_shows_why_health_check_failed(monkey, page, look):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = monkey(plugins=["metrics", "proxy"], sections=f"""
            [UPSTREAM]
                Name app
                Server 127.0.0.1:{closed.getsockname()[1]}
                HealthCheck /health
                HealthInterval 1
            [METRICS]
                Live /live
            [ROUTES]
                /app/* proxy http://app
                /* static
        """)
        page.look(**look)
        page.goto(server.url + "/live")
        cell = "document.querySelector('#upstreams tbody td')"
        page.wait_for(f"{cell}?.textContent == 'down, check: refused'")
        page.run("source.close()")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        if look.get("mobile"):
            assert page.run(f"{cell}.getBoundingClientRect().right <= innerWidth - 20"), "the reason is visible without scrolling"
        down = page.run(f"getComputedStyle({cell}).color")
        page.run(NEXT_EVENT % "Object.assign(event.upstreams[0], {state: 'ejected', reason: '-'});")
        assert page.run(f"[{cell}.textContent, getComputedStyle({cell}).color]") == ["ejected", down]
        page.run(NEXT_EVENT % "Object.assign(event.upstreams[0], {state: 'up', reason: '-'});")
        assert page.run(f"{cell}.textContent") == "up" and page.run(f"getComputedStyle({cell}).color") != down


def test_live_page_numbers_update_and_are_correct(start, page, site):
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    assert page.run("document.querySelector('#version').textContent") == f"version {status(server)['version']}"
    before = page.run("document.querySelector('#totals').textContent")
    for _ in range(200):
        server.get("/")
    for _ in range(3):
        server.get("/none")
    seen = "[...document.querySelectorAll('#statuses tr')].map(r => r.innerText.trim().split(/\\s+/)).map(c => c[0] + ' ' + c.at(-1))"
    page.wait_for(f"{seen}.includes('404 3')")
    assert page.run("document.querySelector('#totals').textContent") != before
    assert number(page.run("document.querySelector('#tile-requests .note').textContent").removeprefix("peak ")) > 10
    page.wait_for("document.querySelector('#tile-latency output').textContent.match(/^[\\d.]+ (µs|ms)$/)")
    rows = page.run("[...document.querySelectorAll('#workers tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert [int(row[0]) for row in rows] == server.workers and rows[0][1] == "serving" and rows[0][7].endswith("B")
    page.wait_for("document.querySelector('#tile-requests output').textContent == '0'")
    assert page.run("document.title").startswith("0/s")
    assert not page.console


# The page's content when it becomes visible, after the first two events and before the third one.
FIRST_LOOK = """
addEventListener("DOMContentLoaded", () => new MutationObserver(() => window.first = window.first || {
    events: [latest !== null, before !== null],
    lines: Object.fromEntries([...document.querySelectorAll(".tile")].map(t =>
        [t.id, (t.querySelector(".stroke")?.getAttribute("d") || "").split("L").length])),
    classes: document.querySelectorAll("#classes .stroke").length,
    bars: document.querySelectorAll("#histogram rect").length,
    rate: document.querySelector("#tile-requests output").textContent,
}).observe(document.querySelector("main"), {attributes: true}));
"""


@pytest.mark.parametrize("reloaded", [False, True])
def test_live_page_first_view_has_lines_and_bars(start, page, reloaded):
    server = start(workers=2)
    for _ in range(30):
        server.get("/")
    history(server, lambda h: len(h["now_ms"]) >= 4 and h["requests"][-2] >= 30)
    if reloaded:
        server.tell(signal.SIGHUP)
        server.err.wait_for("the new configuration serves")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=FIRST_LOOK)
    page.goto(server.url + "/live")
    first = page.wait_for("window.first")
    assert first["events"] == [True, False], "one event"
    for tile in ("requests", "connections", "sent", "memory", "errors"):
        assert first["lines"][f"tile-{tile}"] >= 3, first
    assert first["lines"]["tile-latency"] >= 2 and first["classes"] >= 4 and first["bars"] >= 1
    assert number(first["rate"]) is not None
    assert not page.console


def test_live_page_missing_samples_are_a_gap(start, page):
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.run("source.close()")
    page.run("""{
        const end = latest.now_ms, h = {now_ms: [], durations: [], histogram: []};
        for (const name of [...CLASSES, "requests", "bytes", "connections", "memory", "p50", "p90", "p99", "p999"])
            h[name] = [];
        for (let second = 200; second > 0; second--) {
            if (second > 50 && second < 100)
                continue;
            h.now_ms.push(end - 1000 * second);
            for (const name in h)
                if (!["now_ms", "durations", "histogram"].includes(name))
                    h[name].push(name === "requests" ? 1000 - second : 1);
        }
        const event = latest;
        takeHistory(h);
        takeEvent(event);
        show();
    }""")
    runs = page.run("[...document.querySelectorAll('#tile-connections .stroke')].map(p => p.getAttribute('d').slice(1)"
                    ".split('L').map(xy => Number(xy.split(',')[0])))")
    assert [(run[0], run[-1]) for run in runs] == [(100, 200), (250, 300)]
    rates = page.run("points.map(p => p.requests)")
    assert rates[0] is None and rates[101] is None and rates[50] == rates[120] == 1, "no rate across the gap"


def test_live_page_server_restart_is_a_gap(start, page):
    """The page keeps its samples. The new server counts from zero and has no history, so no rate may span the restart."""
    server = start()
    page.goto(server.url + "/live")
    for _ in range(20):
        server.get("/none")
    page.wait_for("points.length >= 3 && latest.requests.by_class['4xx'] == 20")
    page.run("source.close()")
    seen = page.run("points.map(p => p.at)")
    page.run("""for (const [seconds, total] of [[2, 3], [3, 7]]) {
        const event = structuredClone(latest);
        event.now_ms += 1000 * seconds;
        event.requests.total = total;
        if (total === 3)
            takeHistory({now_ms: [], durations: [], histogram: []});
        takeEvent(event);
        show();
    }""")
    assert page.run("points.map(p => p.at)")[:-2] == seen
    assert page.run("points.slice(-2).map(p => p.requests)") == [None, pytest.approx(4 / 3)]


def test_live_page_can_be_paused_and_resumed(start, page):
    server = start()
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.run("document.querySelector('#pause').click()")
    assert page.run("document.querySelector('#state').textContent") == "paused"
    before = page.run("document.querySelector('#uptime').textContent")
    with Stream(server) as stream:
        for _ in range(3):
            stream.next()
    assert page.run("document.querySelector('#uptime').textContent") == before
    page.run("document.querySelector('#pause').click()")
    page.wait_for(f"document.querySelector('#uptime').textContent != '{before}'")


def test_live_page_reconnects_by_itself(start, page):
    """The stream ends at a reload. A refused connection is final for EventSource, so the script itself tries again."""
    server = start("    MaxViewers 1\n")
    page.goto(server.url + "/live")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    server.tell(signal.SIGHUP)
    page.wait_for("document.querySelector('#reloads').textContent.startsWith('reloaded once')")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
    page.goto("about:blank#away")
    with wait_until(lambda: taken(server), "the only viewer slot"):
        page.goto(server.url + "/live")
        page.wait_for("document.querySelector('#state').textContent == 'reconnecting'")
    page.wait_for("document.querySelector('#state').textContent == 'live'")
