/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include <arpa/inet.h>
#include <monkey/text.h>

#define CACHED_MAX 40  /* longer texts are not cached */
#define CACHE_SIZE 512 /* a power of two */

/* A direct-mapped cache of Python objects for header names, methods and other short texts. */
struct cache {
    struct {
        PyObject *object;
        uint8_t len;
        char text[CACHED_MAX];
    } entries[CACHE_SIZE];
};

static struct cache header_names, words;

static struct {
    PyObject *type, *asgi, *http_version, *scheme, *path, *raw_path, *query_string, *root_path, *headers,
        *client, *server, *state, *extensions, *method, *subprotocols;
} key;

static PyObject *asgi_version, *empty_bytes, *http_extensions, *websocket_extensions;

/* The last results of address_tuple() for the client and for the server: the client's address changes with
 * each connection, the server's rarely. */
static struct address {
    struct mk_addr addr;
    PyObject *tuple;
} last_client, last_local;

static int intern_keys(void)
{
    const struct {
        PyObject **key;
        const char *text;
    } all[] = {{&key.type, "type"},
               {&key.asgi, "asgi"},
               {&key.http_version, "http_version"},
               {&key.scheme, "scheme"},
               {&key.path, "path"},
               {&key.raw_path, "raw_path"},
               {&key.query_string, "query_string"},
               {&key.root_path, "root_path"},
               {&key.headers, "headers"},
               {&key.client, "client"},
               {&key.server, "server"},
               {&key.state, "state"},
               {&key.extensions, "extensions"},
               {&key.method, "method"},
               {&key.subprotocols, "subprotocols"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i].key = PyUnicode_InternFromString(all[i].text);
        if (!*all[i].key)
            return -1;
    }
    return 0;
}

int scope_init(void)
{
    asgi_version = Py_BuildValue("{s:s,s:s}", "version", "3.0", "spec_version", "2.4");
    http_extensions = Py_BuildValue("{s:{},s:{},s:{}}", "http.response.trailers", "http.response.pathsend",
                                    "http.response.early_hint");
    websocket_extensions = Py_BuildValue("{s:{}}", "websocket.http.response");
    empty_bytes = PyBytes_FromStringAndSize(NULL, 0);
    return asgi_version && http_extensions && websocket_extensions && empty_bytes ? intern_keys() : -1;
}

/* Sets dict[name] to `value` and steals the reference. If `value` is NULL (an earlier error), returns -1. */
static int set_item(PyObject *dict, PyObject *name, PyObject *value)
{
    int result = value ? PyDict_SetItem(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

PyObject *scope_template(PyObject *root_path, bool is_websocket)
{
    PyObject *scope = PyDict_New();
    /* Sets all keys that scope_new() will overwrite, so that a copy of the dict need not grow. */
    if (!scope || set_item(scope, key.type, PyUnicode_FromString(is_websocket ? "websocket" : "http")) ||
        PyDict_SetItem(scope, key.asgi, Py_None) || PyDict_SetItem(scope, key.http_version, Py_None) ||
        (!is_websocket && PyDict_SetItem(scope, key.method, Py_None)) ||
        PyDict_SetItem(scope, key.scheme, Py_None) || PyDict_SetItem(scope, key.path, Py_None) ||
        PyDict_SetItem(scope, key.raw_path, Py_None) || PyDict_SetItem(scope, key.query_string, Py_None) ||
        PyDict_SetItem(scope, key.root_path, root_path) || PyDict_SetItem(scope, key.headers, Py_None) ||
        PyDict_SetItem(scope, key.client, Py_None) || PyDict_SetItem(scope, key.server, Py_None) ||
        PyDict_SetItem(scope, key.state, Py_None) || PyDict_SetItem(scope, key.extensions, Py_None) ||
        (is_websocket && PyDict_SetItem(scope, key.subprotocols, Py_None)))
        Py_CLEAR(scope);
    return scope;
}

static unsigned hash_text(mk_str text)
{
    uint64_t hash = mk_fnv1a(MK_FNV1A_INIT, text);
    return (unsigned)((hash ^ hash >> 32) % CACHE_SIZE);
}

static PyObject *make_lower_case(mk_str text)
{
    PyObject *bytes = PyBytes_FromStringAndSize(text.p, (Py_ssize_t)text.len);
    char *p = bytes ? PyBytes_AsString(bytes) : NULL;
    for (size_t i = 0; p && i < text.len; i++) {
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] += 'a' - 'A';
    }
    return bytes;
}

static PyObject *make_word(mk_str text)
{
    return PyUnicode_DecodeLatin1(text.p, (Py_ssize_t)text.len, NULL);
}

/* Returns make(text), or the cached result of an earlier call with the same text. */
static PyObject *make_cached(struct cache *cache, mk_str text, PyObject *(*make)(mk_str text))
{
    if (text.len > CACHED_MAX)
        return make(text);
    unsigned i = hash_text(text);
    if (cache->entries[i].object && cache->entries[i].len == text.len &&
        memcmp(cache->entries[i].text, text.p, text.len) == 0)
        return Py_NewRef(cache->entries[i].object);
    PyObject *made = make(text), *old = cache->entries[i].object;
    if (!made)
        return NULL;
    cache->entries[i].object = Py_NewRef(made);
    cache->entries[i].len = (uint8_t)text.len;
    memcpy(cache->entries[i].text, text.p, text.len);
    Py_XDECREF(old);
    return made;
}

static PyObject *make_bytes(mk_str text)
{
    return text.len ? PyBytes_FromStringAndSize(text.p, (Py_ssize_t)text.len) : Py_NewRef(empty_bytes);
}

static PyObject *make_headers(const struct mk_request *request)
{
    PyObject *list = PyList_New(0);
    mk_str name, value;
    for (size_t i = 0; list && lib.mk_request_header_at(request, i, &name, &value); i++) {
        PyObject *n = make_cached(&header_names, name, make_lower_case), *v = make_bytes(value);
        PyObject *pair = n && v ? PyTuple_Pack(2, n, v) : NULL;
        Py_XDECREF(n);
        Py_XDECREF(v);
        if (!pair || PyList_Append(list, pair))
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* Returns the path of the request target, as the client sent it. */
static mk_str raw_path_of(const struct mk_request *request)
{
    mk_str target = lib.mk_request_target(request);
    const char *p = target.p, *end = target.p + target.len;
    if (target.len && *p != '/' && *p != '*') { /* http://host/path */
        const char *scheme_end = memmem(p, target.len, "://", 3);
        const char *slash = scheme_end ? memchr(scheme_end + 3, '/', (size_t)(end - scheme_end - 3)) : NULL;
        p = slash ? slash : end;
    }
    const char *query = memchr(p, '?', (size_t)(end - p));
    return mk_str_of(p, (size_t)((query ? query : end) - p));
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Percent-decodes a path into `out`, which has space for raw.len bytes. Unlike mk_request_path(), decodes %2F
 * as well. Returns the number of bytes written. */
static size_t unquote(mk_str raw, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        int high = raw.p[i] == '%' && i + 2 < raw.len ? hex_digit(raw.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(raw.p[i + 2]) : -1;
        out[n++] = low >= 0 ? (char)(high << 4 | low) : raw.p[i];
        i += low >= 0 ? 2 : 0;
    }
    return n;
}

/* Returns whether the path has a segment `.` or `..`. */
static bool has_dot_segment(const char *path, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        size_t end = i + 2 + (i + 2 < n && path[i + 2] == '.');
        if (path[i] == '/' && path[i + 1] == '.' && (end == n || path[end] == '/'))
            return true;
    }
    return false;
}

/*
 * Returns the decoded path. It preserves repeated slashes, which mk_request_path() merges, except if the path
 * has dot segments and no encoded slash: it is then mk_request_path(). The rules of the configuration, such as
 * those of the plugin `auth`, apply to that path, so the application must not get one with other segments.
 */
static PyObject *decode_path(const struct mk_request *request)
{
    mk_str path = lib.mk_request_path(request), raw = raw_path_of(request);
    bool has_slash = lib.mk_request_has_encoded_slash(request);
    if (!has_slash && !memmem(raw.p, raw.len, "//", 2))
        return PyUnicode_DecodeUTF8(path.len ? path.p : "/", path.len ? (Py_ssize_t)path.len : 1, "replace");
    char *out = PyMem_Malloc(raw.len + 1);
    if (!out)
        return PyErr_NoMemory();
    size_t n = unquote(raw, out);
    PyObject *text = !has_slash && has_dot_segment(out, n)
                         ? PyUnicode_DecodeUTF8(path.p, (Py_ssize_t)path.len, "replace")
                         : PyUnicode_DecodeUTF8(out, (Py_ssize_t)n, "replace");
    PyMem_Free(out);
    return text;
}

static PyObject *make_path(const struct mk_request *request, PyObject *root_path)
{
    PyObject *text = decode_path(request);
    if (!text || PyUnicode_GetLength(root_path) == 0)
        return text;
    PyObject *whole = PyUnicode_Concat(root_path, text);
    Py_DECREF(text);
    return whole;
}

static PyObject *make_address(const struct mk_addr *addr)
{
    static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];
    bool is_v4 = memcmp(addr->ip, v4_prefix, sizeof v4_prefix) == 0;
    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? addr->ip + 12 : addr->ip, text, sizeof text))
        text[0] = 0;
    return Py_BuildValue("(si)", text, (int)addr->port);
}

/* Returns the tuple (host, port), or None for a Unix socket. */
static PyObject *address_tuple(struct address *last, const struct mk_addr *addr)
{
    if (addr->is_unix)
        return Py_NewRef(Py_None);
    if (!last->tuple || last->addr.port != addr->port ||
        memcmp(last->addr.ip, addr->ip, sizeof addr->ip) != 0) {
        PyObject *tuple = make_address(addr), *old = last->tuple;
        if (!tuple)
            return NULL;
        *last = (struct address){*addr, tuple};
        Py_XDECREF(old);
    }
    return Py_NewRef(last->tuple);
}

static PyObject *make_local(const struct mk_request *request)
{
    struct mk_addr addr;
    return lib.mk_request_local_addr(request, &addr) < 0 ? Py_NewRef(Py_None)
                                                         : address_tuple(&last_local, &addr);
}

static PyObject *make_scheme(const struct mk_request *request, bool is_websocket)
{
    mk_str scheme = lib.mk_request_scheme(request);
    if (is_websocket)
        scheme = scheme.len == 5 ? MK_STR("wss") : MK_STR("ws");
    return make_cached(&words, scheme, make_word);
}

static PyObject *make_version(const struct mk_request *request)
{
    unsigned version = lib.mk_request_version(request);
    return make_cached(&words,
                       version == 20   ? MK_STR("2")
                       : version == 10 ? MK_STR("1.0")
                                       : MK_STR("1.1"),
                       make_word);
}

static bool is_protocol_header(mk_str name)
{
    return name.len == 22 && strncasecmp(name.p, "sec-websocket-protocol", name.len) == 0;
}

/* Appends the members of a comma-separated list. */
static int append_words(PyObject *list, mk_str text)
{
    const char *p = text.p, *end = text.p + text.len;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *q = comma ? comma : end, *next = comma ? comma + 1 : end;
        while (p < q && (*p == ' ' || *p == '\t'))
            p++;
        while (q > p && (q[-1] == ' ' || q[-1] == '\t'))
            q--;
        PyObject *word = p < q ? PyUnicode_DecodeLatin1(p, q - p, NULL) : NULL;
        if (p < q && (!word || PyList_Append(list, word))) {
            Py_XDECREF(word);
            return -1;
        }
        Py_XDECREF(word);
        p = next;
    }
    return 0;
}

static PyObject *make_subprotocols(const struct mk_request *request)
{
    PyObject *list = PyList_New(0);
    mk_str name, value;
    for (size_t i = 0; list && lib.mk_request_header_at(request, i, &name, &value); i++) {
        if (is_protocol_header(name) && append_words(list, value))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *scope_new(PyObject *template, PyObject *root_path, PyObject *state, struct mk_request *request,
                    bool is_websocket)
{
    PyObject *scope = PyDict_Copy(template);
    if (!scope)
        return NULL;
    if (set_item(scope, key.asgi, PyDict_Copy(asgi_version)) ||
        set_item(scope, key.http_version, make_version(request)) ||
        set_item(scope, key.scheme, make_scheme(request, is_websocket)) ||
        set_item(scope, key.path, make_path(request, root_path)) ||
        set_item(scope, key.raw_path, make_bytes(raw_path_of(request))) ||
        set_item(scope, key.query_string, make_bytes(lib.mk_request_query(request))) ||
        set_item(scope, key.headers, make_headers(request)) ||
        set_item(scope, key.client, address_tuple(&last_client, lib.mk_request_client_addr(request))) ||
        set_item(scope, key.server, make_local(request)) || set_item(scope, key.state, PyDict_Copy(state)) ||
        set_item(scope, key.extensions, PyDict_Copy(is_websocket ? websocket_extensions : http_extensions)) ||
        (is_websocket && set_item(scope, key.subprotocols, make_subprotocols(request))) ||
        (!is_websocket &&
         set_item(scope, key.method, make_cached(&words, lib.mk_request_method_name(request), make_word))))
        Py_CLEAR(scope);
    return scope;
}
