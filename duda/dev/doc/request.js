// SPDX-License-Identifier: Apache-2.0
// Requests: their authentication, their curl command, and how they are sent. A request has `method`, `url`,
// `headers` (name and value), and a body: `text`, or the fields of a form (name, and text or file).
"use strict";

const schemes = api.components?.securitySchemes || {};
const credentials = {}; // by name of the scheme: {value, user, password}

// The credentials outlive a reload of the page, but not the tab.
const STORE = "monkey-api-credentials";
try {
    Object.assign(credentials, JSON.parse(sessionStorage.getItem(STORE)));
} catch {
    // The browser denies storage, for example to a page that is a local file.
}

function saveCredentials() {
    try {
        sessionStorage.setItem(STORE, JSON.stringify(credentials));
    } catch {
        // see above
    }
}

function isAuthorized(name) {
    const c = credentials[name];
    return Boolean(c && (c.value || c.user || c.password));
}

function base64(text) {
    return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function addCredential(request, name) {
    const scheme = schemes[name], c = credentials[name];
    if (scheme.scheme === "basic")
        request.headers.push(["Authorization", `Basic ${base64(`${c.user || ""}:${c.password || ""}`)}`]);
    else if (scheme.type === "http")
        request.headers.push(["Authorization", `Bearer ${c.value}`]);
    else if (scheme.in === "header")
        request.headers.push([scheme.name, c.value]);
    else if (scheme.in === "query")
        request.url.searchParams.set(scheme.name, c.value);
    else
        request.cookies.push([scheme.name, c.value]);
}

// Uses the first alternative for which the user has entered all credentials.
function addCredentials(request, security) {
    const usable = (security || []).find(names => Object.keys(names).length && Object.keys(names).every(isAuthorized));
    for (const name of Object.keys(usable || {}))
        addCredential(request, name);
}

// `monkey run` accepts this token from pages of the same origin, so that this page can call routes behind
// duda_csrf_check().
function addCsrfToken(request) {
    const isSafe = ["GET", "HEAD", "OPTIONS"].includes(request.method);
    if (!isSafe && request.url.origin === location.origin && location.pathname.endsWith("/.duda/doc"))
        request.headers.push(["X-CSRF-Token", "api-page"]);
}

// ---- curl ----

const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;

// In -F, curl treats `;` and `,` of unquoted values, and a leading `@` or `<`, as its own syntax.
const formQuoted = text => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

function curlField([name, value], isMultipart) {
    if (!isMultipart)
        return `--data-urlencode ${quoted(`${encodeURIComponent(name)}=${value}`)}`;
    if (value instanceof File)
        return `-F ${quoted(`${name}=@${formQuoted(value.name)}`)}`;
    return `--form-string ${quoted(`${name}=${value}`)}`;
}

function curlText(request) {
    const parts = ["curl -i"];
    if (request.method !== (request.text !== undefined || request.fields ? "POST" : "GET"))
        parts.push(request.method === "HEAD" ? "--head" : `-X ${request.method}`);
    parts.push(quoted(String(request.url)));
    for (const [name, value] of request.headers)
        parts.push(`-H ${quoted(value ? `${name}: ${value}` : `${name};`)}`);
    for (const [name, value] of request.cookies)
        parts.push(`-b ${quoted(`${name}=${value}`)}`);
    if (request.text !== undefined)
        parts.push(`--data-raw ${quoted(request.text)}`);
    for (const field of request.fields || [])
        parts.push(curlField(field, request.isMultipart));
    return parts.join(" \\\n  ");
}

// ---- Sending ----

function encodeBody(request) {
    if (!request.fields)
        return request.text;
    const body = request.isMultipart ? new FormData() : new URLSearchParams();
    for (const [name, value] of request.fields)
        body.append(name, value);
    return body; // the browser adds the Content-Type
}

// Scripts cannot set the Cookie header, but they can store a cookie for this site.
function storeCookies(request) {
    if (request.url.origin !== location.origin)
        return;
    for (const [name, value] of request.cookies)
        document.cookie = `${name}=${value}; path=/; SameSite=Strict${name.startsWith("__") ? "; Secure" : ""}`;
}

function sendRequest(request, signal) {
    storeCookies(request);
    return fetch(request.url, {method: request.method, headers: request.headers, body: encodeBody(request), signal, cache: "no-store"});
}
