// SPDX-License-Identifier: Apache-2.0
// The live page: reads one event a second, each with all numbers since the server began, and shows what changed.
"use strict";

const KEPT = 120; // seconds that the lines show
const $ = id => document.getElementById(id);
const past = []; // the events, oldest first
const points = []; // what was worked out of each pair of them
let source = null, paused = false, timer = 0;

// ---- Text ----

const whole = new Intl.NumberFormat("en");
const number = n => n === null ? "–" : n >= 1e6 ? `${(n / 1e6).toPrecision(3)} M` : n >= 1e4 ? `${(n / 1e3).toPrecision(3)} k` :
    n >= 100 || Number.isInteger(n) ? whole.format(Math.round(n)) : n.toFixed(n < 10 ? 1 : 0);

function bytes(n) {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let i = 0;
    if (n === null)
        return "–";
    while (n >= 1000 && i < units.length - 1) {
        n /= 1024;
        i++;
    }
    return `${i === 0 || n >= 100 ? Math.round(n) : n.toPrecision(2 + (n >= 10))} ${units[i]}`;
}

function micros(us) {
    if (us === null)
        return "–";
    if (us < 1000)
        return `${Math.round(us)} µs`;
    return us < 1e6 ? `${(us / 1e3).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;
}

function span(seconds) {
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const i = Math.max(0, parts.findIndex(([size]) => seconds >= size));
    if (seconds < 1)
        return "0 s";
    const [size, unit] = parts[i], rest = parts[i + 1] ? Math.floor(seconds % size / parts[i + 1][0]) : 0;
    return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${parts[i + 1][1]}` : ""}`;
}

const percent = (part, all) => all ? `${(100 * part / all).toFixed(part === all || !part ? 0 : 1)} %` : "–";
const sum = (list, of) => list.reduce((n, each) => n + of(each), 0);

// ---- Durations ----

// A bucket counts what is shorter than its end; below 8 us each is one wide, then there are 8 to each doubling.
const bucketStart = end => end <= 8 ? end - 1 : end - 2 ** (Math.floor(Math.log2(end - 1)) - 3);

function bucketsSince(now, then) {
    const before = new Map(then ? then.latency_us.histogram : []);
    return now.latency_us.histogram.map(([end, n]) => [end, n - (before.get(end) || 0)]).filter(([, n]) => n > 0);
}

function quantile(buckets, part) {
    let rank = Math.max(1, Math.ceil(sum(buckets, b => b[1]) * part));
    for (const [end, n] of buckets) {
        if (rank <= n)
            return bucketStart(end) + (end - bucketStart(end)) * rank / n;
        rank -= n;
    }
    return null;
}

const QUANTILES = [["p50", .5, "p50"], ["p90", .9, "p90"], ["p99", .99, "p99"], ["p999", .999, "p99.9"]];

// ---- Drawing ----

function make(name, attributes, parent) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes))
        node.setAttribute(key, value);
    return parent.appendChild(node);
}

// A line with the area below it, the latest at the right; null is where nothing is known.
function line(svg, values, label) {
    const width = KEPT - 1, height = 100, top = Math.max(1e-9, ...values.map(v => v || 0));
    const y = v => (height - v / top * (height - 6)).toFixed(1);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-label", label);
    let runs = [[]];
    values.forEach((v, i) => v === null ? runs.push([]) : runs[runs.length - 1].push([i + KEPT - values.length, v]));
    for (const run of runs.filter(r => r.length)) {
        const path = run.map(([x, v]) => `${x},${y(v)}`).join("L");
        make("path", {class: "area", d: `M${run[0][0]},${height}L${path}L${run[run.length - 1][0]},${height}Z`}, svg);
        make("path", {class: "stroke", d: `M${path}`}, svg);
    }
    make("path", {class: "base", d: `M0,${height}H${width}`}, svg);
}

function bar(svg, part, all) {
    svg.replaceChildren();
    svg.setAttribute("viewBox", "0 0 100 24");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    make("rect", {class: "track", x: 0, y: 11, width: 100, height: 2}, svg);
    make("rect", {class: "bar", x: 0, y: 7, width: all ? Math.max(part ? .5 : 0, 100 * part / all) : 0, height: 10}, svg);
}

// Round numbers below a logarithmic scale, as many as there is room for.
function ticks(svg, first, last, x, width, height) {
    const decades = Math.log10(last / first), room = width / 70;
    const steps = decades * 3 <= room ? [1, 2, 5] : decades * 2 <= room ? [1, 3] : [1];
    for (let decade = 10 ** Math.floor(Math.log10(first)); decade < last; decade *= 10)
        for (const at of steps.map(step => step * decade).filter(at => at >= first && x(at) < width - 20)) {
            make("path", {class: "base", d: `M${x(at)},${height - 22}v4`}, svg);
            make("text", {x: x(at), y: height - 5, "text-anchor": x(at) < 20 ? "start" : "middle"}, svg).textContent =
                at < 1e3 ? `${at} µs` : at < 1e6 ? `${at / 1e3} ms` : `${at / 1e6} s`;
        }
}

// Bars over a logarithmic scale, four to each doubling so that they stay readable.
function histogram(svg, buckets) {
    const width = svg.clientWidth || 400, height = svg.clientHeight || 144, foot = 22, n = sum(buckets, b => b[1]);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", `${n} requests in the last minute`);
    if (!n) {
        make("text", {x: width / 2, y: height / 2, "text-anchor": "middle"}, svg).textContent = "no requests";
        return;
    }
    const first = Math.floor(Math.log2(Math.max(1, bucketStart(buckets[0][0]))));
    const last = Math.max(first + 3, Math.ceil(Math.log2(buckets[buckets.length - 1][0])));
    const x = us => (Math.log2(Math.max(1, us)) - first) / (last - first) * width;
    const bars = new Map();
    for (const [end, count] of buckets) {
        const at = Math.floor(4 * Math.log2(Math.max(1, bucketStart(end))));
        bars.set(at, (bars.get(at) || 0) + count);
    }
    const top = Math.max(...bars.values());
    for (const [at, count] of bars) {
        const left = x(2 ** (at / 4)), high = Math.max(1.5, count / top * (height - foot - 18));
        make("rect", {class: "bar", x: left + .5, y: height - foot - high,
            width: Math.max(2, x(2 ** ((at + 1) / 4)) - left - 1), height: high}, svg);
    }
    make("path", {class: "base", d: `M0,${height - foot}H${width}`}, svg);
    ticks(svg, 2 ** first, 2 ** last, x, width, height);
    const p99 = quantile(buckets, .99), right = x(p99) > width * .7;
    make("path", {class: "mark", d: `M${x(p99)},14V${height - foot}`}, svg);
    make("text", {x: x(p99) + (right ? -6 : 6), y: 12, "text-anchor": right ? "end" : "start"}, svg).textContent =
        `p99 ${micros(p99)}`;
}

// ---- Tables ----

// One row for each entry: `cells` are texts, or functions that fill the cell; the first one is the row's head. Rows
// and cells are used again, so that a selection or a screen reader's place in them survives.
function table(id, rows) {
    const body = $(id).tBodies[0];
    while (body.rows.length > rows.length)
        body.deleteRow(-1);
    rows.forEach((cells, i) => {
        const row = body.rows[i] || body.insertRow();
        cells.forEach((cell, j) => {
            let node = row.cells[j];
            if (!node) {
                node = row.appendChild(document.createElement(j ? "td" : "th"));
                if (!j)
                    node.scope = "row";
            }
            if (typeof cell === "function")
                cell(node.firstChild || make("svg", {role: "img"}, node), node);
            else if (node.textContent !== cell)
                node.textContent = cell;
        });
    });
}

// ---- What is shown ----

// From one event to the next: everything as of a second.
function compare(now, then) {
    const seconds = (now.now_ms - then.now_ms) / 1000;
    const rate = of => seconds > 0 ? Math.max(0, (of(now) - of(then)) / seconds) : null; // null: with nothing before
    const tenAgo = past.find(e => now.now_ms - e.now_ms <= 10500) || then, recent = bucketsSince(now, tenAgo);
    const point = {requests: rate(e => e.requests.total), sent: rate(e => e.requests.bytes), classes: {}};
    for (const name of Object.keys(now.requests.by_class))
        point.classes[name] = rate(e => e.requests.by_class[name]);
    for (const [name, part] of QUANTILES)
        point[name] = quantile(recent, part);
    point.connections = sum(now.workers, w => w.connections);
    point.memory = sum(now.workers, w => w.pss || w.rss || 0);
    point.errors = point.classes["5xx"];
    const old = new Map(then.workers.map(w => [w.pid, w]));
    point.workers = new Map(now.workers.map(w =>
        [w.pid, rate(e => e === now ? w.requests : old.has(w.pid) ? old.get(w.pid).requests : 0)]));
    const hosts = new Map(then.hosts.map(h => [h.name, h.requests]));
    point.hosts = new Map(now.hosts.map(h =>
        [h.name, rate(e => e === now || !hosts.has(h.name) ? h.requests : hosts.get(h.name))]));
    return point;
}

function tile(name, text, values, note, label) {
    const node = $(`tile-${name}`);
    node.querySelector("output").textContent = text;
    line(node.querySelector("svg"), values, label || `${name}, last two minutes`);
    node.querySelector(".note").textContent = note;
}

const series = of => points.map(of);
const highest = of => Math.max(0, ...points.map(p => of(p) || 0));

function showTiles(now, p) {
    const accepted = sum(now.workers, w => w.accepted), dropped = sum(now.workers, w => w.dropped);
    const measured = now.workers.some(w => w.pss) ? "shared memory by its part" : "shared memory in full";
    tile("requests", number(p.requests), series(x => x.requests), `at most ${number(highest(x => x.requests))}`);
    tile("latency", micros(p.p99), series(x => x.p99), p.p50 === null ? "no requests in 10 seconds" :
        `half below ${micros(p.p50)}`);
    tile("connections", whole.format(p.connections), series(x => x.connections),
        `${whole.format(accepted)} taken, ${whole.format(dropped)} refused`);
    tile("sent", bytes(p.sent), series(x => x.sent), `at most ${bytes(highest(x => x.sent))}`);
    tile("memory", p.memory ? bytes(p.memory) : "–", series(x => x.memory),
        `${now.workers.length} ${now.workers.length === 1 ? "process" : "processes"}, ${measured}`);
    tile("errors", number(p.errors), series(x => x.errors),
        `${whole.format(now.requests.by_class["5xx"])} of the server (5xx), ` +
        `${whole.format(now.requests.by_class["4xx"])} of clients (4xx)`);
}

function showRequests(now, p) {
    const classes = ["2xx", "3xx", "4xx", "5xx", "none"].filter(c => c !== "none" || now.requests.by_class.none);
    const all = sum(classes, c => p.classes[c]);
    table("classes", classes.map(c => [c, svg => line(svg, series(x => x.classes[c]), `${c}, last two minutes`),
        number(p.classes[c]), percent(p.classes[c], all)]));
    const share = (id, entries, total) => table(id, entries.map(([name, n]) =>
        [name, svg => bar(svg, n, total), whole.format(n)]));
    const statuses = Object.entries(now.requests.by_status).map(([s, n]) => [s === "0" ? "none" : s, n]);
    share("statuses", statuses, now.requests.total);
    share("methods", Object.entries(now.requests.by_method), now.requests.total);
    share("endings", Object.entries(now.requests.by_ending), now.requests.total);
    table("latency", QUANTILES.map(([name, , words]) =>
        [words, svg => line(svg, series(x => x[name]), `${name}, last two minutes`), micros(p[name]),
            micros(now.latency_us.count ? now.latency_us[name] : null)]));
    histogram($("histogram"), bucketsSince(now, past.find(e => now.now_ms - e.now_ms <= 60500)));
}

function showProcesses(now, p) {
    table("workers", now.workers.map(w => [String(w.pid), w.state, number(p.workers.get(w.pid)),
        whole.format(w.connections), whole.format(w.accepted), whole.format(w.dropped),
        w.pss || w.rss ? bytes(w.pss || w.rss) : "–", w.cache_files === undefined ? "–" : whole.format(w.cache_files),
        span(now.now - w.started)]));
    $("hosts-part").hidden = now.hosts.length < 2;
    if (now.hosts.length >= 2)
        table("hosts", now.hosts.map(h => [h.name, number(p.hosts.get(h.name)), whole.format(h.requests), bytes(h.bytes),
            micros(h.requests ? h.p50 : null), micros(h.requests ? h.p99 : null)]));
}

function showFacts(now) {
    $("where").textContent = location.host;
    $("version").textContent = `version ${now.version}`;
    $("uptime").textContent = `up ${span(now.now - now.started)}`;
    $("reloads").textContent = now.reloads ? `reloaded ${now.reloads === 1 ? "once" : `${now.reloads} times`}, last ` +
        `${span(now.now - now.reloaded)} ago` : "";
    $("totals").textContent = `${whole.format(now.requests.total)} requests and ${bytes(now.requests.bytes)} of content ` +
        `since ${new Date(now.started * 1000).toLocaleString()}. Master process ${now.master}.`;
}

function show() {
    const now = past[past.length - 1], p = points[points.length - 1];
    $("main").hidden = false;
    showFacts(now);
    showTiles(now, p);
    showRequests(now, p);
    showProcesses(now, p);
    document.title = `${number(p.requests)}/s, Monkey, live`;
}

// ---- Events ----

function take(now) {
    const then = past[past.length - 1];
    if (then && (now.started !== then.started || now.now_ms < then.now_ms || now.requests.total < then.requests.total))
        past.length = points.length = 0; // another server, or one that began anew
    points.push(compare(now, past[past.length - 1] || now));
    past.push(now);
    if (past.length > KEPT)
        past.shift();
    if (points.length > KEPT)
        points.shift();
    if (!paused)
        show();
}

function say(text, live) {
    if ($("state").textContent !== text)
        $("state").textContent = text;
    $("state").classList.toggle("live", live);
}

function connect() {
    clearTimeout(timer);
    source = new EventSource("?events");
    source.onmessage = event => {
        say(paused ? "paused" : "live", !paused);
        take(JSON.parse(event.data));
    };
    source.onerror = () => {
        say("reconnecting", false);
        if (source.readyState === EventSource.CLOSED) // refused, too many watch: the browser itself gives up
            timer = setTimeout(connect, 3000);
    };
}

$("pause").onclick = () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", paused);
    $("pause").textContent = paused ? "Go on" : "Pause";
    say(paused ? "paused" : "live", !paused);
    if (!paused && past.length)
        show();
};

connect();
