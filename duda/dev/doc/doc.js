// SPDX-License-Identifier: Apache-2.0
// The API page: lists the operations by tag, describes them, and sends requests. All of its data comes from the
// OpenAPI document in the page.
"use strict";

const SHOWN_MAX = 200000; // characters of a response
const $ = id => document.getElementById(id);

function add(to, name, text, more = {}) {
    const e = Object.assign(document.createElement(name), more);
    if (text)
        e.textContent = text;
    to.append(e);
    return e;
}

// `monkey run` serves the page below the path of the service. A page from a file has no server.
function defaultServer() {
    const end = "/.duda/doc";
    if (!location.protocol.startsWith("http"))
        return "http://127.0.0.1:2001";
    return location.origin + (location.pathname.endsWith(end) ? location.pathname.slice(0, -end.length) : "");
}

// ---- Operations ----

// An operation belongs to the section of its first tag.
function listOperations() {
    const list = [];
    for (const [path, methods] of Object.entries(api.paths))
        for (const [method, op] of Object.entries(methods))
            list.push({path, method: method.toUpperCase(), op, tag: op.tags?.[0] || ""});
    return list;
}

function listSections(operations) {
    const known = (api.tags || []).map(t => t.name), used = operations.map(o => o.tag);
    return [...new Set([...used.filter(t => !t), ...known, ...used])].filter(t => used.includes(t));
}

function table(to, caption, headings) {
    const t = add(add(to, "div", "", {className: "wide"}), "table");
    if (caption)
        add(t, "caption", caption);
    const row = add(add(t, "thead"), "tr");
    for (const text of headings)
        add(row, "th", text, {scope: "col"});
    return add(t, "tbody");
}

function describeSchema(to, schema, title) {
    const s = resolveSchema(schema);
    const details = add(to, "details", "", {className: "schema"});
    add(details, "summary", `${title}: ${typeText(schema)}`);
    const rows = table(details, "", ["Name", "Type", "", "Limits"]);
    eachMember(s, (path, member, isRequired) => {
        const row = add(rows, "tr");
        for (const text of [path, typeText(member), isRequired ? "required" : "", limitsText(member)])
            add(row, "td", text);
    });
    add(details, "pre", JSON.stringify(exampleValue(schema), null, 2), {tabIndex: 0});
}

function describeResponses(to, responses) {
    const rows = table(to, "Responses", ["Status", "Description", "Media types"]);
    for (const [status, response] of Object.entries(responses)) {
        const row = add(rows, "tr");
        for (const text of [status, response.description, Object.keys(response.content || {}).join(", ")])
            add(row, "td", text);
    }
    const shown = new Set();
    for (const [status, response] of Object.entries(responses))
        for (const {schema} of Object.values(response.content || {})) {
            const key = JSON.stringify(schema);
            const s = schema && resolveSchema(schema.type === "array" ? schema.items : schema);
            if (s?.properties && !shown.has(key))
                describeSchema(to, schema, `Body of ${status}`);
            shown.add(key);
        }
}

// ---- Fields of a request ----

function select(to, values, name, isRequired) {
    const input = add(to, "select", "", {name});
    if (!isRequired)
        add(input, "option", "", {value: "", label: "not sent"});
    for (const value of values)
        add(input, "option", String(value), {value: String(value)});
    return input;
}

function inputType(s) {
    return s.format === "binary" ? "file" : s.format === "date" ? "date" : "text";
}

// A field for one value: a choice, a file, or text. `group` keeps the names of parameters apart from those of form fields.
function addField(to, group, name, schema, isRequired) {
    const isList = resolveSchema(schema).type === "array", s = isList ? resolveSchema(resolveSchema(schema).items) : resolveSchema(schema);
    const label = add(to, "label", "", {className: "field"}), text = add(label, "span", "", {className: "name"});
    add(text, "b", name);
    if (isRequired)
        add(text, "span", " required", {className: "required"});
    add(text, "small", [typeText(schema), limitsText(schema)].filter(Boolean).join(", "));
    const values = s.enum || (s.type === "boolean" ? [false, true] : null), full = `${group}:${name}`;
    if (values && !isList)
        return select(label, values, full, isRequired);
    const input = add(label, "input", "", {name: full, type: inputType(s), required: isRequired, multiple: isList, autocomplete: "off"});
    if (s.type === "integer" || s.type === "number")
        input.inputMode = s.minimum >= 0 && s.type === "integer" ? "numeric" : "text";
    input.placeholder = isList && input.type === "text" ? "one, two" : "";
    return input;
}

function addParams(form, op) {
    const params = op.parameters || [];
    for (const p of params) {
        const field = addField(form, p.in, p.name, p.schema, p.required);
        field.closest("label").querySelector("small").prepend(p.in === "path" ? "" : `${p.in}, `);
        if (p.in === "path" && field.type === "text")
            field.value = String(exampleValue(p.schema));
    }
    if (!params.some(p => p.in === "query")) {
        const label = add(form, "label", "", {className: "field"});
        const text = add(label, "span", "", {className: "name"});
        add(text, "b", "Query");
        add(text, "small", "not documented");
        add(label, "input", "", {name: "query", placeholder: "name=value&...", autocomplete: "off"});
    }
}

function checkJson(area, note, media) {
    note.textContent = "";
    if (!/[/+]json$/.test(media) || !area.value)
        return;
    try {
        JSON.parse(area.value);
    } catch (e) {
        note.textContent = e.message;
    }
}

function addTextBody(to, media, schema) {
    const label = add(to, "label", "", {className: "body"});
    add(label, "b", "Body");
    const value = schema ? JSON.stringify(exampleValue(schema), null, 2) : "";
    const area = add(label, "textarea", "", {name: "body", value, spellcheck: false, rows: Math.min(24, Math.max(4, value.split("\n").length))});
    const note = add(to, "p", "", {className: "note bad", role: "status"});
    area.oninput = () => checkJson(area, note, media);
}

function addFormBody(to, schema) {
    const s = resolveSchema(schema);
    for (const [name, member] of Object.entries(s.properties || {})) {
        const isRequired = (s.required || []).includes(name), field = addField(to, "form", name, member, isRequired);
        if (field.type === "text" && isRequired)
            field.value = String(exampleValue(member));
    }
}

// The success response may have several media types.
function addAccept(form, op) {
    const types = Object.keys(Object.values(op.responses)[0]?.content || {});
    if (types.length < 2)
        return;
    const label = add(form, "label", "", {className: "field"});
    add(add(label, "span", "", {className: "name"}), "b", "Accept");
    select(label, types, "accept", true);
}

// The media type determines the fields of the body.
function addBody(form, op) {
    const contents = Object.entries(op.requestBody?.content || {});
    if (!contents.length)
        return;
    const label = add(form, "label", "", {className: "field"});
    add(add(label, "span", "", {className: "name"}), "b", "Content-Type");
    const choice = add(label, "select", "", {name: "media"}), fields = add(form, "div", "", {className: "fields"});
    for (const [media] of contents)
        add(choice, "option", media, {value: media});
    choice.onchange = () => {
        const {schema} = op.requestBody.content[choice.value], isForm = /form/.test(choice.value);
        fields.replaceChildren();
        if (isForm && schema)
            addFormBody(fields, schema);
        else
            addTextBody(fields, choice.value, schema);
        if (schema && !isForm)
            describeSchema(fields, schema, "Body");
    };
    choice.onchange();
}

// ---- Reading the fields ----

function listValues(field, schema) {
    const isList = resolveSchema(schema).type === "array";
    if (field.type === "file")
        return [...field.files];
    if (field.value === "")
        return [];
    return isList ? field.value.split(",").map(v => v.trim()) : [field.value];
}

// A parameter for the rest of the path may contain slashes.
function buildUrl(form, path, op) {
    let target = path;
    for (const p of op.parameters || [])
        if (p.in === "path") {
            const value = form.elements[`path:${p.name}`].value, isRest = p.schema.description?.includes("slashes");
            target = target.replace(`{${p.name}}`, () => isRest ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value));
        }
    const url = new URL($("server").value.replace(/\/$/, "") + target);
    url.search = form.elements.query?.value || "";
    for (const p of op.parameters || [])
        if (p.in === "query")
            for (const value of listValues(form.elements[`query:${p.name}`], p.schema))
                url.searchParams.append(p.name, value);
    return url;
}

function addRequestBody(request, form, op) {
    const media = form.elements.media?.value;
    if (!media)
        return;
    const {schema} = op.requestBody.content[media];
    if (!/form/.test(media) || !schema) {
        request.text = form.elements.body.value;
        request.headers.push(["Content-Type", media]);
        return;
    }
    request.isMultipart = media === "multipart/form-data";
    request.fields = [];
    for (const [name, member] of Object.entries(resolveSchema(schema).properties || {}))
        for (const value of listValues(form.elements[`form:${name}`], member))
            request.fields.push([name, value]);
}

function buildRequest(form, {path, method, op}) {
    const request = {method, url: buildUrl(form, path, op), headers: [], cookies: []};
    for (const p of op.parameters || [])
        if (p.in === "header" && form.elements[`header:${p.name}`].value)
            request.headers.push([p.name, form.elements[`header:${p.name}`].value]);
    if (form.elements.accept)
        request.headers.push(["Accept", form.elements.accept.value]);
    addRequestBody(request, form, op);
    addCredentials(request, op.security);
    addCsrfToken(request);
    return request;
}

// ---- Responses ----

function prettyBody(type, text) {
    if (!/[/+]json/.test(type))
        return text;
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

const millis = ms => ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`;
const isText = type => !type || /^text\/|json|xml|javascript|urlencoded/.test(type);

// Shows the body as it arrives, so that a stream of events is visible.
async function showTextBody(response, pre, type) {
    const decoder = new TextDecoder(), reader = response.body?.getReader();
    let text = "", size = 0;
    for (let part = {}; reader && !(part = await reader.read()).done;) {
        size += part.value.length;
        if (text.length < SHOWN_MAX)
            pre.textContent = text = (text + decoder.decode(part.value, {stream: true})).slice(0, SHOWN_MAX);
    }
    pre.textContent = prettyBody(type, text) + (text.length < SHOWN_MAX ? "" : "\n...");
    return size;
}

async function showBinaryBody(response, to, type) {
    const blob = await response.blob(), url = URL.createObjectURL(blob);
    if (type.startsWith("image/"))
        add(to, "img", "", {src: url, alt: "The response"});
    add(to, "a", "Save the response", {href: url, download: "response"});
    return blob.size;
}

function addHeaders(to, response) {
    const details = add(to, "details", "", {className: "headers"});
    add(details, "summary", "Headers");
    add(details, "pre", [...response.headers].map(h => h.join(": ")).join("\n"), {tabIndex: 0});
}

async function showResponse(response, to, start) {
    const type = response.headers.get("Content-Type") || "", first = performance.now() - start;
    const status = add(to, "p", "", {className: `status ${response.status < 400 ? "good" : "bad"}`});
    add(status, "b", `${response.status} ${response.statusText}`);
    const facts = add(status, "span", ` ${millis(first)}`);
    addHeaders(to, response);
    const pre = isText(type) && add(to, "pre", "", {className: "content", tabIndex: 0});
    const size = pre ? await showTextBody(response, pre, type) : await showBinaryBody(response, to, type);
    facts.textContent = ` ${millis(first)}, ${size} bytes, ${millis(performance.now() - start)} in total`;
}

async function submit(form, operation, output) {
    const controller = new AbortController(), stop = form.querySelector(".stop"), start = performance.now();
    for (const link of output.querySelectorAll("a[download]"))
        URL.revokeObjectURL(link.href);
    output.replaceChildren();
    stop.hidden = false;
    stop.onclick = () => controller.abort();
    try {
        await showResponse(await sendRequest(buildRequest(form, operation), controller.signal), output, start);
    } catch (e) {
        const text = e.name === "AbortError" ? `Stopped after ${millis(performance.now() - start)}.` : `${e.message}. Does the server run, and allow requests from this page?`;
        add(output, "p", text, {className: "status bad"});
    }
    stop.hidden = true;
}

// ---- Cards ----

function addActions(card, form, operation) {
    const actions = add(form, "div", "", {className: "actions"});
    add(actions, "button", "Send", {className: "send"});
    add(actions, "button", "Stop", {type: "button", className: "stop", hidden: true});
    const copy = add(actions, "button", "Copy curl", {type: "button"});
    const curl = add(form, "pre", "", {className: "curl", tabIndex: 0}), output = add(card, "div", "", {className: "output"});
    output.setAttribute("aria-live", "polite");
    const update = () => {
        try {
            curl.textContent = curlText(buildRequest(form, operation));
        } catch (e) {
            curl.textContent = e.message;
        }
    };
    form.oninput = form.onchange = update;
    form.onsubmit = event => {
        event.preventDefault();
        update();
        submit(form, operation, output);
    };
    form.onkeydown = event => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
            form.requestSubmit();
    };
    copy.onclick = async () => {
        update();
        await navigator.clipboard?.writeText(curl.textContent);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy curl"; }, 1500);
    };
    document.addEventListener("authorized", update);
    update();
}

function fillCard(card, operation) {
    const {op} = operation;
    if (op.description)
        add(card, "p", op.description, {className: "text"});
    if (op.tags?.length > 1)
        add(card, "p", `Tags: ${op.tags.join(", ")}`, {className: "note"});
    const form = add(card, "form");
    addParams(form, op);
    addAccept(form, op);
    addBody(form, op);
    addActions(card, form, operation);
    describeResponses(card, op.responses);
}

// The prefix distinguishes the ID of a handler such as list() from the IDs of the page itself.
const cardId = op => `op-${op.operationId}`;

// Cards are filled when they are first opened, so that a page with hundreds of operations appears at once.
function addCard(to, operation) {
    const {path, method, op} = operation;
    const card = add(to, "details", "", {className: "card", id: cardId(op)}), summary = add(card, "summary");
    add(summary, "span", method, {className: `method ${method.toLowerCase()}`});
    add(summary, "code", path);
    if (op.security)
        add(summary, "span", "auth", {className: "lock", title: "Requires authorization"});
    add(summary, "span", op.summary, {className: "summary"});
    card.ontoggle = () => {
        if (card.open && card.childElementCount === 1)
            fillCard(card, operation);
    };
    return card;
}

function addNavigation(to, operation) {
    const link = add(to, "a", "", {href: `#${cardId(operation.op)}`});
    add(link, "span", operation.method, {className: `method ${operation.method.toLowerCase()}`});
    add(link, "span", operation.path, {className: "path"});
    return link;
}

function build() {
    const operations = listOperations(), shown = [];
    for (const name of listSections(operations)) {
        const tag = (api.tags || []).find(t => t.name === name);
        const section = add($("operations"), "section"), group = add($("list"), "div");
        if (name) {
            add(section, "h2", name);
            add(group, "h3", name);
        }
        if (tag?.description)
            add(section, "p", tag.description, {className: "text"});
        for (const operation of operations.filter(o => o.tag === name)) {
            const words = [operation.method, operation.path, operation.op.operationId, operation.op.summary, tag?.description, ...(operation.op.tags || [])];
            shown.push({card: addCard(section, operation), link: addNavigation(group, operation), section, group,
                        words: words.join(" ").toLowerCase()});
        }
    }
    return shown;
}

// ---- Search ----

function filter(shown, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const visible = new Set();
    for (const s of shown) {
        s.card.hidden = s.link.hidden = !words.every(w => s.words.includes(w));
        if (!s.card.hidden)
            visible.add(s.section).add(s.group);
    }
    for (const s of shown)
        for (const part of [s.section, s.group])
            part.hidden = !visible.has(part);
    $("nothing").hidden = visible.size > 0;
}

function openTarget() {
    const card = $(decodeURIComponent(location.hash.slice(1)));
    if (card?.className !== "card")
        return;
    card.open = true;
    card.dispatchEvent(new Event("toggle")); // the browser sends its own event later
    card.scrollIntoView();
    card.firstElementChild.focus({preventScroll: true});
}

// ---- Authorization ----

function addScheme(to, name) {
    const scheme = schemes[name], set = add(to, "fieldset"), kind = scheme.scheme || `${scheme.in} ${scheme.name}`;
    add(set, "legend", name === kind ? name : `${name} (${kind})`);
    if (scheme.description)
        add(set, "p", scheme.description, {className: "note"});
    if (name === "session") {
        add(set, "p", "After you have logged in, the browser sends the cookie itself.", {className: "note"});
        return;
    }
    const fields = scheme.scheme === "basic" ? [["user", "User"], ["password", "Password"]] : [["value", scheme.type === "http" ? "Token" : "Value"]];
    for (const [key, text] of fields) {
        const label = add(set, "label", "", {className: "field"});
        add(add(label, "span", "", {className: "name"}), "b", text);
        add(label, "input", "", {name: `${name}:${key}`, type: key === "password" ? "password" : "text", value: credentials[name]?.[key] || "",
                                 autocomplete: "off", spellcheck: false});
    }
}

function showAuthorization() {
    const names = Object.keys(schemes), n = names.filter(isAuthorized).length;
    $("authorize").textContent = n ? `Authorized (${n})` : "Authorize";
}

function prepareAuthorization() {
    const dialog = $("authorization"), form = dialog.querySelector("form"), names = Object.keys(schemes);
    $("authorize").hidden = !names.length;
    $("authorize").onclick = () => {
        const fields = form.querySelector("div");
        fields.replaceChildren();
        for (const name of names)
            addScheme(fields, name);
        dialog.showModal();
    };
    form.onsubmit = event => {
        for (const name of names)
            credentials[name] = Object.fromEntries(["value", "user", "password"].map(key =>
                [key, event.submitter?.value === "forget" ? "" : form.elements[`${name}:${key}`]?.value.trim() || ""]));
        saveCredentials();
        showAuthorization();
        document.dispatchEvent(new Event("authorized"));
    };
    dialog.onclick = event => {
        if (event.target === dialog)
            dialog.close();
    };
    showAuthorization();
}

// ---- The page ----

const shown = build();
$("server").value = defaultServer();
$("server").oninput = () => document.dispatchEvent(new Event("authorized"));
$("search").oninput = () => filter(shown, $("search").value);
$("search").onkeydown = event => {
    if (event.key !== "Escape")
        return;
    $("search").value = "";
    filter(shown, "");
};
document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.target.matches("input, textarea, select"))
        return;
    event.preventDefault();
    $("search").focus();
});
addEventListener("hashchange", openTarget);
prepareAuthorization();
openTarget();
