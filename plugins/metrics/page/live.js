// SPDX-License-Identifier: Apache-2.0
// The live page. Its first event is the history that the server keeps; then one event a second has all numbers since
// the server started. The page shows the differences.
"use strict";

const KEPT = 300e3; // ms that the lines show
const GAP = 3500; // ms without a number that a line shows as a gap
const $ = id => document.getElementById(id);
const points = []; // rates and values over time, oldest first
const slices = []; // the durations of the last minute: {at, buckets}, one for each event
let latest = null, before = null; // the last events
let histogram = []; // all durations until the last number
let certificates = []; // the list, which is requested less often than events come
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

// A bucket counts durations below its end. Buckets below 8 us have a width of 1; then each doubling has 8.
const bucketStart = end => end <= 8 ? end - 1 : end - 2 ** (Math.floor(Math.log2(end - 1)) - 3);

function difference(buckets, earlier) {
    const old = new Map(earlier);
    return buckets.map(([end, n]) => [end, n - (old.get(end) || 0)]).filter(([, n]) => n > 0);
}

// The durations since `from`.
function bucketsSince(from) {
    const all = new Map();
    for (const slice of slices.filter(s => s.at > from))
        for (const [end, n] of slice.buckets)
            all.set(end, (all.get(end) || 0) + n);
    return [...all].sort((a, b) => a[0] - b[0]);
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
const CLASSES = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

// ---- Drawing ----

function make(name, attributes, parent) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes))
        node.setAttribute(key, value);
    return parent.appendChild(node);
}

const LINEAR = {
    share: (v, of, top) => v / top,
    scale: (of, text) => `0 to ${text(highest(of))}`,
};
// For times: one slow request must not flatten all others. A decade below the fastest one is the base line.
const LOGARITHMIC = {
    share: (v, of, top) => Math.log(10 * v / lowest(of)) / Math.log(10 * top / lowest(of)),
    scale: (of, text) => highest(of) ? `${text(lowest(of))} to ${text(highest(of))}, log` : "",
};

// A line with the area below it, the latest point at the right. It has a gap where a value is null or points are missing.
function line(svg, of, label, text, kind = LINEAR) {
    const width = KEPT / 1e3, height = 100, top = Math.max(1e-9, highest(of));
    const start = points[points.length - 1].at - KEPT;
    const y = v => (height - (v > 0 ? kind.share(v, of, top) : 0) * (height - 6)).toFixed(1);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-label", `${label}, ${kind.scale(of, text)}`);
    make("title", {}, svg).textContent = svg.getAttribute("aria-label");
    make("rect", {class: "hit", width, height}, svg);
    for (let x = 60; x < width; x += 60)
        make("path", {class: "grid", d: `M${x},0V${height}`}, svg); // one for each minute
    const runs = [[]];
    points.forEach((p, i) => {
        const v = of(p);
        if (v === null || i > 0 && p.at - points[i - 1].at > GAP)
            runs.push([]);
        if (v !== null)
            runs[runs.length - 1].push([((p.at - start) / 1e3).toFixed(2), v]);
    });
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

// Round numbers below a logarithmic scale, as many as fit.
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
function bars(svg, buckets) {
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
    const counts = new Map();
    for (const [end, count] of buckets) {
        const at = Math.floor(4 * Math.log2(Math.max(1, bucketStart(end))));
        counts.set(at, (counts.get(at) || 0) + count);
    }
    const top = Math.max(...counts.values());
    for (const [at, count] of counts) {
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
    make("text", {class: "top", x: right ? 0 : width, y: 12, "text-anchor": right ? "start" : "end"}, svg).textContent =
        `0 to ${whole.format(top)} requests`;
}

// ---- Tables ----

// One row for each entry: `cells` are texts, texts with a class, or functions that fill the cell; the first one is the
// row head. Rows and cells are reused, so that selections and the place of a screen reader survive.
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
            if (typeof cell === "function") {
                cell(node.firstChild || make("svg", {role: "img"}, node), node);
                return;
            }
            const [text, name] = typeof cell === "string" ? [cell, ""] : cell;
            if (node.textContent !== text)
                node.textContent = text;
            if (node.className !== name)
                node.className = name;
        });
    });
}

// ---- Points and views ----

const rate = (now, then, ms) => Math.max(0, 1e3 * (now - then) / ms); // counts fall with a host that is removed

// A point has the counts of one moment. Its rates need an earlier point: recent, but not so recent that noise dominates.
function addPoint(p) {
    const then = points.findLast(e => e.at <= p.at - 500 && e.at >= p.at - GAP);
    const change = of => then && then.counts ? rate(of(p.counts), of(then.counts), p.at - then.at) : null;
    p.requests = change(c => c.requests);
    p.sent = change(c => c.bytes);
    p.classes = Object.fromEntries(CLASSES.map(name => [name, change(c => c.classes[name])]));
    p.errors = p.classes["5xx"];
    points.push(p);
    while (points[0].at < p.at - KEPT)
        points.shift();
}

// Keeps older points of the page itself. They may be from before a restart, so no rates refer to them.
function takeHistory(h) {
    const first = h.now_ms.length ? h.now_ms[0] : Infinity;
    points.splice(0, Infinity, ...points.filter(p => p.at < first).map(p => ({...p, counts: null})));
    h.now_ms.forEach((at, i) => {
        const p = {at, connections: h.connections[i], memory: h.memory[i], cpu: null};
        p.counts = {requests: h.requests[i], bytes: h.bytes[i], classes: {}};
        for (const name of CLASSES)
            p.counts.classes[name] = h[name][i];
        for (const [name] of QUANTILES)
            p[name] = h[name][i] || null;
        addPoint(p);
    });
    slices.splice(0, Infinity, ...h.durations.map(([at, buckets]) => ({at, buckets})));
    histogram = h.now_ms.length ? h.histogram : null;
    latest = before = null;
}

function takeEvent(now) {
    const at = now.now_ms, first = points.findIndex(p => p.at >= at);
    if (first >= 0)
        points.splice(first); // of another machine, or a sample that is newer than a shared event
    slices.push({at, buckets: histogram ? difference(now.latency_us.histogram, histogram) : []});
    while (slices[0].at < at - 60e3)
        slices.shift();
    histogram = now.latency_us.histogram;
    const p = {at, connections: sum(now.workers, w => w.connections), memory: sum(now.workers, w => w.pss || w.rss || 0)};
    p.counts = {requests: now.requests.total, bytes: now.requests.bytes, classes: now.requests.by_class};
    const recent = bucketsSince(at - 10e3);
    for (const [name, part] of QUANTILES)
        p[name] = quantile(recent, part);
    addPoint(p);
    now.upstreams ??= []; // tables that nothing counts in are not sent
    now.routes ??= [];
    for (const r of now.routes)
        r.name = `${r.service} ${r.method} ${r.route}`;
    before = latest;
    latest = now;
    p.cpu = cpuSinceEvent();
}

// The CPU time per second of the workers that reported in both of the last events. A worker may miss an event while it
// measures itself, and all its CPU time must not count as that of one second. Null without such a worker.
function cpuSinceEvent() {
    const both = latest.workers.map(w => [w.cpu_us, before?.workers.find(old => old.pid === w.pid)?.cpu_us])
        .filter(pair => !pair.includes(undefined));
    return both.length ? rate(sum(both, pair => pair[0]), sum(both, pair => pair[1]), latest.now_ms - before.now_ms) : null;
}

// The rates of a worker or a host, which only the last two events have.
function ratesOf(list, key, count) {
    const ms = before && latest.now_ms - before.now_ms, old = new Map(before ? before[list].map(e => [e[key], count(e)]) : []);
    return new Map(latest[list].map(e => [e[key], before ? rate(count(e), old.get(e[key]) || 0, ms) : null]));
}

// The unit is that of the scale. The number of the tile has its unit in the HTML.
function tile(name, format, of, note, kind = LINEAR, unit = "") {
    const text = n => format(n) + unit;
    const node = $(`tile-${name}`);
    node.querySelector("output").textContent = format(of(points[points.length - 1]));
    line(node.querySelector("svg"), of, `${name}, last five minutes`, text, kind);
    node.querySelector(".scale").textContent = kind.scale(of, text);
    node.querySelector(".note").textContent = note;
}

// CPU time in microseconds per second, as a part of one core.
const load = rate => rate === null ? "–" : `${Math.round(rate / 1e4)} %`;

const highest = of => Math.max(0, ...points.map(p => of(p) || 0));
const lowest = of => Math.min(...points.map(p => of(p) || Infinity));

function showTiles(now, p) {
    const accepted = sum(now.workers, w => w.accepted), dropped = sum(now.workers, w => w.dropped);
    const measured = now.workers.some(w => w.pss) ? "shared memory divided" : "shared memory in each";
    tile("requests", number, x => x.requests, `peak ${number(highest(x => x.requests))}`, LINEAR, " /s");
    tile("latency", micros, x => x.p99, p.p50 === null ? "no requests in 10 seconds" :
        `p50 ${micros(p.p50)}`, LOGARITHMIC);
    tile("connections", n => whole.format(n), x => x.connections,
        `${whole.format(accepted)} accepted, ${whole.format(dropped)} refused`);
    tile("sent", bytes, x => x.sent, `peak ${bytes(highest(x => x.sent))}`, LINEAR, "/s");
    tile("cpu", load, x => x.cpu, `peak ${load(highest(x => x.cpu))}, of all workers together`);
    tile("memory", n => n ? bytes(n) : "–", x => x.memory,
        `${now.workers.length} ${now.workers.length === 1 ? "process" : "processes"}, ${measured}`);
    tile("errors", number, x => x.errors,
        `${whole.format(now.requests.by_class["5xx"])} by the server (5xx), ` +
        `${whole.format(now.requests.by_class["4xx"])} by clients (4xx)`, LINEAR, " /s");
}

function showRequests(now, p) {
    const classes = ["2xx", "3xx", "4xx", "5xx", "none"].filter(c => c !== "none" || now.requests.by_class.none);
    const all = sum(classes, c => p.classes[c]);
    table("classes", classes.map(c => [c, svg => line(svg, x => x.classes[c], `${c}, last five minutes`, number),
        number(p.classes[c]), percent(p.classes[c], all)]));
    const share = (id, entries, total) => table(id, entries.map(([name, n]) =>
        [name, svg => bar(svg, n, total), whole.format(n)]));
    const statuses = Object.entries(now.requests.by_status).map(([s, n]) => [s === "0" ? "none" : s, n]);
    share("statuses", statuses, now.requests.total);
    share("methods", Object.entries(now.requests.by_method), now.requests.total);
    share("outcomes", Object.entries(now.requests.by_outcome), now.requests.total);
    table("latency", QUANTILES.map(([name, , words]) =>
        [words, svg => line(svg, x => x[name], `${words}, last five minutes`, micros, LOGARITHMIC), micros(p[name]),
            micros(now.latency_us.count ? now.latency_us[name] : null)]));
    bars($("histogram"), bucketsSince(now.now_ms - 60e3));
}

const stateOf = u => u.state.replace("_", " ") + (u.reason && u.reason !== "-" ? `, check: ${u.reason}` : "");

function showUpstreams(now) {
    $("upstreams-part").hidden = !now.upstreams.length;
    table("upstreams", now.upstreams.map(u => [u.server + (u.backup ? " (backup)" : ""),
        [stateOf(u), `text dot ${u.state}`], whole.format(u.busy), micros(u.latency_us || null),
        whole.format(u.failures), whole.format(u.requests), whole.format(u.waiting), whole.format(u.idle),
        u.limit ? whole.format(u.limit) : "none", [u.upstream === u.server ? "–" : u.upstream, "text"]]));
}

function showRoutes(now) {
    const rates = ratesOf("routes", "name", r => r.requests);
    const time = (r, us) => micros(r.requests ? us : null);
    $("routes-part").hidden = !now.routes.length;
    table("routes", [...now.routes].sort((a, b) => b.requests - a.requests).map(r => [
        r.method === "*" ? r.route : `${r.method} ${r.route}`, [r.service, "text"], number(rates.get(r.name)), whole.format(r.requests), whole.format(r.failures),
        whole.format(r.cancelled), whole.format(r.crashes), time(r, r.mean_us), time(r, r.p50_us),
        time(r, r.p99_us)]));
}

function showProcesses(now) {
    const cpu = ratesOf("workers", "pid", w => w.cpu_us || 0);
    $("cpu").textContent = before ? `CPU ${load(points[points.length - 1].cpu)}` : "";
    const workers = ratesOf("workers", "pid", w => w.requests), hosts = ratesOf("hosts", "name", h => h.requests);
    table("workers", now.workers.map(w => [String(w.pid), w.state, number(workers.get(w.pid)),
        load(cpu.get(w.pid)), whole.format(w.connections), whole.format(w.accepted), whole.format(w.dropped),
        w.pss || w.rss ? bytes(w.pss || w.rss) : "–", w.cache_files === undefined ? "–" : whole.format(w.cache_files),
        span(now.now - w.started)]));
    $("hosts-part").hidden = now.hosts.length < 2;
    if (now.hosts.length >= 2)
        table("hosts", now.hosts.map(h => [h.name, number(hosts.get(h.name)), whole.format(h.requests), bytes(h.bytes),
            micros(h.requests ? h.p50 : null), micros(h.requests ? h.p99 : null)]));
}

function showCertificates() {
    const until = at => !at ? "–" : at > latest.now ? `in ${span(at - latest.now)}` : `${span(latest.now - at)} ago`;
    const failure = c => c.renewal?.last_failure && `${c.renewal.last_failure} (next attempt ${until(c.renewal.next_attempt)})`;
    const bad = certificates.filter(c => c.needs_attention).length, shown = certificates.slice(0, 200);
    $("certificates-part").hidden = !certificates.length;
    const names = c => c.names.slice(0, 3).join(" ") + (c.names.length > 3 ? ` +${c.names.length - 3}` : "");
    table("certificates", shown.map(c => [names(c) || c.file,
        [until(c.not_after), `text dot ${c.needs_attention ? "down" : "up"}`], [until(c.renewal?.next), "text"],
        [/CN=([^,]+)/.exec(c.issuer)?.[1] || c.issuer || "–", "text"],
        [c.error?.text || failure(c) || c.warning?.text || "–", "text long"]]));
    document.querySelector("#certificates-part .note").textContent =
        `${bad || "None"} of ${certificates.length} ${bad === 1 ? "needs" : "need"} attention. ` +
        (shown.length < certificates.length ? `These ${shown.length} expire first.` : "");
}

async function fetchCertificates() {
    try {
        certificates = await (await fetch("?certificates")).json();
    } catch { // the next attempt may succeed
    }
}

function showFacts(now) {
    $("where").textContent = location.host;
    $("version").textContent = `version ${now.version}`;
    $("uptime").textContent = `up ${span(now.now - now.started)}`;
    $("generation").textContent = `configuration ${now.generation}`;
    $("reloads").textContent = now.reloads ? `reloaded ${now.reloads === 1 ? "once" : `${now.reloads} times`}, last ` +
        `${span(now.now - now.reloaded)} ago` : "";
    const memory = now.memory?.[0], scarce = memory ? memory.shedding + memory.paused : 0; // of the plugin memory
    const problems = [
        now.reload_failed && `the last reload failed ${span(now.now - now.reload_failed)} ago: see the error log`,
        now.confirm_at && `the previous configuration returns in ${span(now.confirm_at - now.now)} without \`monkey confirm\``,
        scarce && `workers that reject requests, because their memory is scarce: ${scarce}`,
        now.certificates_expired && `hosts with an expired certificate: ${now.certificates_expired}`,
        now.certificates_early && `hosts with a certificate that is not yet valid: ${now.certificates_early}`,
        now.certificates_kept && `hosts that keep an old certificate, because the new files are unusable: ${now.certificates_kept}`,
        !now.certificates_expired && now.certificate_ends && now.certificate_ends - now.now < 14 * 86400 &&
            `a certificate ends in ${span(now.certificate_ends - now.now)}`,
    ].filter(Boolean);
    $("problems").textContent = problems.length ? `${problems.join("; ")}.` : "";
    $("problems").hidden = !problems.length;
    $("totals").textContent = `${whole.format(now.requests.total)} requests and ${bytes(now.requests.bytes)} of content ` +
        `since ${new Date(now.started * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC. Master process ${now.master}.`;
}

function show() {
    const now = latest, p = points[points.length - 1];
    $("main").hidden = false;
    showFacts(now);
    showTiles(now, p);
    showRequests(now, p);
    showUpstreams(now);
    showRoutes(now);
    showProcesses(now);
    showCertificates();
    document.title = `${number(p.requests)}/s, Monkey, live`;
}

// ---- Events ----

function say(text, live) {
    if ($("state").textContent !== text)
        $("state").textContent = text;
    $("state").classList.toggle("live", live);
}

function connect() {
    clearTimeout(timer);
    source = new EventSource("?events");
    source.addEventListener("history", event => takeHistory(JSON.parse(event.data)));
    source.onmessage = event => {
        say(paused ? "paused" : "live", !paused);
        takeEvent(JSON.parse(event.data));
        if (!paused)
            show();
    };
    source.onerror = () => {
        say("reconnecting", false);
        if (source.readyState === EventSource.CLOSED) // refused because of too many viewers: the browser does not try again
            timer = setTimeout(connect, 3000);
    };
}

$("pause").onclick = () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", paused);
    $("pause").textContent = paused ? "Resume" : "Pause";
    say(paused ? "paused" : "live", !paused);
    if (!paused && latest)
        show();
};

connect();
fetchCertificates();
setInterval(fetchCertificates, 3e4);
