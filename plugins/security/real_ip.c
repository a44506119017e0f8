/* SPDX-License-Identifier: Apache-2.0 */
#include "real_ip.h"

#include "rules.h"

enum { HOPS_MAX = 64 };

/* ---- Parsing lists from their end ---- */

/* Returns whether the quote is escaped by an odd number of backslashes. */
static bool is_escaped(mk_str s, size_t at)
{
    size_t n = 0;
    while (n < at && s.p[at - n - 1] == '\\')
        n++;
    return n % 2 == 1;
}

/* Removes the last element of *rest. Parsing starts at the end, where our own proxy has appended its element:
 * text that a client has put in front of this element cannot change how it is parsed. */
static mk_str pop_last_element(mk_str *rest)
{
    bool quoted = false;
    size_t at = rest->len;
    for (; at > 0; at--) {
        char c = rest->p[at - 1];
        if (c == '"' && !is_escaped(*rest, at - 1))
            quoted = !quoted;
        if (c == ',' && !quoted)
            break;
    }
    mk_str last = mk_str_trim(mk_str_of(rest->p + at, rest->len - at));
    *rest = at > 0 ? mk_str_of(rest->p, at - 1) : mk_str_of(NULL, 0);
    return last;
}

struct walk {
    const struct mk_request *request;
    mk_str field, rest; /* name of the header; unparsed rest of a line */
    size_t line;        /* the lines before this index are still unparsed */
};

static void begin_header_walk(struct walk *walk)
{
    mk_str name, value;
    while (mk_request_header_at(walk->request, walk->line, &name, &value))
        walk->line++;
}

/* Gets the next non-empty element, starting with the last element of the last line. Returns false if there
 * are no more. */
static bool next_header_element(struct walk *walk, mk_str *element)
{
    mk_str name, value;
    for (;;) {
        while (walk->rest.p) {
            *element = pop_last_element(&walk->rest);
            if (element->len)
                return true;
        }
        if (walk->line == 0)
            return false;
        if (mk_request_header_at(walk->request, --walk->line, &name, &value) &&
            mk_str_eq_nocase(name, walk->field))
            walk->rest = value;
    }
}

/* ---- Address ---- */

/* Rejects text with escapes, which addresses do not need. Accepts unquoted colons: they are invalid but
 * common. */
static bool unquote_value(mk_str *s)
{
    bool opened = s->len > 0 && s->p[0] == '"', closed = s->len > 1 && s->p[s->len - 1] == '"';
    if (opened && closed)
        *s = mk_str_of(s->p + 1, s->len - 2);
    return opened == closed && mk_str_find(*s, '"') == MK_STR_NONE && mk_str_find(*s, '\\') == MK_STR_NONE;
}

/* Removes and returns the text before the next unquoted `;`. */
static mk_str parse_pair(mk_str *element)
{
    bool quoted = false;
    size_t at = 0;
    for (; at < element->len && (quoted || element->p[at] != ';'); at++) {
        quoted ^= element->p[at] == '"';
        at += quoted && element->p[at] == '\\';
    }
    mk_str pair = mk_str_first(*element, at);
    *element = at < element->len ? mk_str_skip(*element, at + 1) : mk_str_of(NULL, 0);
    return pair;
}

/* Finds a parameter of a Forwarded element; absent if there is none. Returns false if the element is
 * malformed. */
static bool find_parameter(mk_str element, mk_str expected, mk_str *found)
{
    *found = mk_str_of(NULL, 0);
    while (element.p) {
        mk_str value = parse_pair(&element), name = mk_str_trim(mk_str_cut(&value, '='));
        if (!mk_str_eq_nocase(name, expected))
            continue;
        value = mk_str_trim(value);
        if (!value.p || found->p || !unquote_value(&value))
            return false;
        *found = value;
    }
    return true;
}

static bool is_hidden_node(mk_str node)
{
    return !node.p || mk_str_starts(node, MK_STR("_")) || mk_str_eq_nocase(node, MK_STR("unknown"));
}

static enum security_real_ip_result parse_forwarded_hop(const struct security_real_ip *real, mk_str element,
                                                        struct mk_addr *peer)
{
    struct mk_addr found;
    mk_str node = element;
    if (real->is_forwarded && !find_parameter(element, MK_STR("for"), &node))
        return SECURITY_REAL_IP_INVALID;
    if (real->is_forwarded && is_hidden_node(node))
        return SECURITY_REAL_IP_HIDDEN;
    if (!mk_addr_parse(node, &found))
        return SECURITY_REAL_IP_INVALID;
    *peer = found;
    return SECURITY_REAL_IP_FOUND;
}

enum security_real_ip_result security_real_ip_find(const struct security_real_ip *real,
                                                   const struct mk_request *request,
                                                   struct security_client *client)
{
    struct walk walk = {.request = request, .field = real->field};
    mk_str element;
    client->hops = 0;
    if (!real->field.p)
        return SECURITY_REAL_IP_FOUND;
    begin_header_walk(&walk);
    while (mk_network_set_contains(real->trusted, &client->peer)) {
        if (client->hops == HOPS_MAX)
            return SECURITY_REAL_IP_INVALID;
        if (!next_header_element(&walk, &element))
            break;
        client->hops++;
        enum security_real_ip_result end = parse_forwarded_hop(real, element, &client->peer);
        if (end != SECURITY_REAL_IP_FOUND)
            return end;
    }
    return SECURITY_REAL_IP_FOUND;
}

/* ---- Scheme ---- */

static bool is_any_of(mk_str word, mk_str a, mk_str b, mk_str c)
{
    return mk_str_eq_nocase(word, a) || mk_str_eq_nocase(word, b) || mk_str_eq_nocase(word, c);
}

/* Sets the scheme; ignores unknown values. */
static void parse_scheme(mk_str word, struct security_client *client)
{
    bool is_secure = is_any_of(word, MK_STR("https"), MK_STR("wss"), MK_STR("on"));
    if (!is_secure && !is_any_of(word, MK_STR("http"), MK_STR("ws"), MK_STR("off")))
        return;
    client->knows_scheme = true;
    client->is_secure = is_secure;
}

/* Either every proxy has added an element, or only the first one. Of the elements that trusted proxies have
 * added, the one furthest from us counts. */
void security_real_ip_find_scheme(const struct security_real_ip *real, const struct mk_request *request,
                                  struct security_client *client)
{
    struct walk walk = {.request = request, .field = real->scheme_field};
    unsigned n = client->hops ? client->hops : 1;
    mk_str element, word;
    client->knows_scheme = false;
    if (!real->scheme_field.p)
        return;
    begin_header_walk(&walk);
    for (unsigned i = 0; i < n && next_header_element(&walk, &element); i++) {
        bool good = !real->scheme_is_forwarded || find_parameter(element, MK_STR("proto"), &word);
        if (good)
            parse_scheme(real->scheme_is_forwarded ? word : element, client);
    }
}
