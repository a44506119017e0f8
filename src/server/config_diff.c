/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_diff.h"

#include "base/mem.h"
#include "conf/table.h"
#include "setup/config_generation_type.h"
#include "setup/config_print.h"
#include "setup/plugin_object.h"

enum { TEXT_MAX = 64 << 20, CONTEXT = 3, AT_COLUMN = 48, EDITS_MAX = 4000 };

/* ---- Lines and their positions ---- */

/* Finds the n-th section with that name in the files. */
static const struct mk_conf_section *nth_section(const struct mk_config_generation *g, mk_str name, size_t n)
{
    for (const struct mk_conf_section *s = g->tree.first; s; s = s->next)
        if (mk_str_eq_nocase(s->name, name) && n-- == 0)
            return s;
    return NULL;
}

static bool entry_has_key(const struct mk_conf_section *s, const struct mk_conf_entry *e, mk_str key)
{
    const struct mk_conf_key *known = s->table ? mk_conf_table_find(s->table, e->key, true) : NULL;
    return mk_str_eq_nocase(e->key, key) || (known && mk_str_eq_nocase(mk_str_from_c(known->name), key));
}

/* Finds the n-th entry with that key, or the last one: several entries may be printed on one line. With a value,
 * only entries with that value count. */
static const struct mk_conf_entry *nth_entry(const struct mk_conf_section *s, mk_str key, mk_str value,
                                             size_t n)
{
    const struct mk_conf_entry *found = NULL;
    for (const struct mk_conf_entry *e = s ? s->first : NULL; e; e = e->next) {
        if (!entry_has_key(s, e, key) || (value.p && !mk_str_eq(e->value, value)))
            continue;
        found = e;
        if (n-- == 0)
            break;
    }
    return found;
}

static mk_str write_position(const struct mk_config_generation *g, const struct mk_conf_source_pos *at,
                             struct mk_arena *arena)
{
    char buf[512];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_str file = at->file;
    if (mk_str_starts(file, g->folder) && file.len > g->folder.len && file.p[g->folder.len] == '/')
        file = mk_str_skip(file, g->folder.len + 1);
    mk_buf_addf(&text, "%.*s:%u", MK_STR_ARG(file), at->line);
    return mk_arena_copy(arena, mk_buf_str(&text));
}

struct line_reader {
    const struct mk_config_generation *g;
    struct mk_arena *arena;
    struct mk_config_lines *lines;
    mk_str header, header_shown; /* "[HOST]", and the names of the host */
    mk_str host, host_shown;
    size_t section_start;
    const struct mk_conf_section *section;
};

static bool is_header(mk_str line)
{
    return mk_str_starts(line, MK_STR("["));
}

static mk_str key_of(mk_str line)
{
    return mk_str_word(&line);
}

static size_t count_before(const struct line_reader *r, mk_str key, bool is_section)
{
    size_t n = 0;
    for (size_t i = is_section ? 0 : r->section_start; i < r->lines->n; i++)
        n += is_header(r->lines->at[i].text) == is_section && mk_str_eq(key_of(r->lines->at[i].text), key);
    return n;
}

/* Copies the first line of the text with references. Returns its length in the text. */
static size_t copy_shown_line(const struct line_reader *r, mk_str text, mk_str *shown)
{
    struct mk_buf buf = mk_buf_growing(TEXT_MAX);
    size_t len = mk_config_print_line_references(r->g, text, &buf);
    *shown = mk_arena_copy(r->arena, mk_buf_str(&buf));
    r->arena->failed |= buf.failed;
    mk_buf_free(&buf);
    return len;
}

static mk_str value_of(mk_str line)
{
    (void)mk_str_word(&line);
    return mk_str_trim(line);
}

/* Finds the names of the host whose keys `rest` begins with. */
static void find_host_names(struct line_reader *r, mk_str rest)
{
    mk_str shown;
    r->host = r->host_shown = MK_STR("");
    for (; rest.len && !is_header(rest); (void)mk_str_cut(&rest, '\n'))
        if (mk_str_eq(key_of(rest), MK_STR("ServerName"))) {
            r->host = value_of(mk_str_first(rest, copy_shown_line(r, rest, &shown)));
            r->host_shown = value_of(shown);
            return;
        }
}

static mk_str copy_header(const struct line_reader *r, mk_str line, mk_str host)
{
    char buf[512];
    struct mk_buf header = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&header, "%.*s%s%.*s", MK_STR_ARG(line), host.len ? " " : "", MK_STR_ARG(host));
    return mk_arena_copy(r->arena, mk_buf_str(&header));
}

static void begin_section(struct line_reader *r, mk_str line, mk_str rest)
{
    mk_str name = mk_str_of(line.p + 1, line.len - 2);
    r->section = nth_section(r->g, name, count_before(r, line, true));
    if (mk_str_eq(line, MK_STR("[HOST]")))
        find_host_names(r, rest);
    r->header = copy_header(r, line, r->host);
    r->header_shown = copy_header(r, line, r->host_shown);
    r->section_start = r->lines->n;
}

/* Describes where the n-th plugin is loaded. A plugin that another one needs precedes it, and has its entry. */
static mk_str write_load_position(const struct line_reader *r, size_t n)
{
    char buf[512];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const struct mk_loaded_plugin *l = r->g->plugins;
    while (l && n--)
        l = l->next;
    if (!l)
        return MK_STR("default");
    mk_str at = write_position(r->g, &l->entry->at, r->arena);
    for (const struct mk_loaded_plugin *later = l->next; later; later = later->next) {
        if (later->entry != l->entry)
            continue;
        mk_buf_addf(&text, "implied by %.*s", MK_STR_ARG(at));
        return mk_arena_copy(r->arena, mk_buf_str(&text));
    }
    return at;
}

/* Finds the entry that sets the key in this line: the one with its value, or else the one at its position. */
static const struct mk_conf_entry *find_entry(const struct line_reader *r, mk_str line)
{
    mk_str value = line, key = mk_str_word(&value);
    size_t n_equal = 0;
    for (size_t i = r->section_start; i < r->lines->n; i++)
        n_equal += mk_str_eq(r->lines->at[i].text, line);
    value = mk_str_trim(value);
    const struct mk_conf_entry *e = value.len ? nth_entry(r->section, key, value, n_equal) : NULL;
    return e ? e : nth_entry(r->section, key, MK_STR_NULL, count_before(r, key, false));
}

static mk_str find_position(const struct line_reader *r, mk_str line)
{
    const struct mk_conf_source_pos *at = NULL;
    if (is_header(line)) {
        at = r->section ? &r->section->at : NULL;
    } else if (mk_str_eq(key_of(line), MK_STR("Load")) && mk_str_eq(r->header, MK_STR("[PLUGINS]"))) {
        return write_load_position(r, count_before(r, MK_STR("Load"), false));
    } else {
        const struct mk_conf_entry *e = find_entry(r, line);
        at = e ? &e->at : NULL;
    }
    return at ? write_position(r->g, at, r->arena) : MK_STR("default");
}

static void add_line(struct line_reader *r, mk_str line, mk_str shown)
{
    struct mk_config_line *out = &r->lines->at[r->lines->n];
    out->text = line;
    out->shown = shown;
    out->section = r->header;
    out->section_shown = r->header_shown;
    out->at = find_position(r, line);
    r->lines->n++;
}

static size_t count_lines(mk_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

bool mk_config_diff_lines(const struct mk_config_generation *g, struct mk_arena *arena,
                          struct mk_config_lines *out)
{
    struct mk_buf buf = mk_buf_growing(TEXT_MAX);
    struct line_reader r = {.g = g, .arena = arena, .lines = out};
    mk_config_print_effective(g, &buf);
    mk_str text = mk_arena_copy(arena, mk_buf_str(&buf));
    bool ok = !buf.failed;
    mk_buf_free(&buf);
    *out = (struct mk_config_lines){.at = mk_arena_zalloc(arena, count_lines(text), sizeof *out->at)};
    while (out->at && text.len) {
        mk_str shown, line = mk_str_first(text, copy_shown_line(&r, text, &shown));
        text = mk_str_skip(text, line.len);
        text = mk_str_skip(text, text.len ? 1 : 0);
        if (is_header(line))
            begin_section(&r, line, text);
        if (line.len)
            add_line(&r, line, shown);
    }
    return ok && !arena->failed;
}

/* ---- Secrets ---- */

static bool contains_nocase(mk_str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++)
        if (mk_str_eq_nocase(mk_str_of(text.p + i, len), mk_str_of(word, len)))
            return true;
    return false;
}

static bool names_secret(mk_str word)
{
    static const char *const words[] = {"password",      "passwd", "secret",  "token",
                                        "credential",    "apikey", "api_key", "api-key",
                                        "authorization", "cookie", "hmac"};
    for (size_t i = 0; i < MK_LEN(words); i++)
        if (contains_nocase(word, words[i]))
            return true;
    return mk_str_ends(word, MK_STR("Key")) || mk_str_ends(word, MK_STR("key"));
}

/* Appends a word; of a URL, the user and the password are masked. */
static void append_word(mk_str word, struct mk_buf *out)
{
    size_t end = mk_str_find_last(word, '@'), start = 0;
    for (size_t i = 0; i + 2 < word.len && !start; i++)
        if (memcmp(word.p + i, "://", 3) == 0)
            start = i + 3;
    if (!start || end == MK_STR_NONE || end < start) {
        mk_buf_add(out, word);
        return;
    }
    mk_buf_add(out, mk_str_first(word, start));
    mk_buf_add(out, MK_STR("********"));
    mk_buf_add(out, mk_str_skip(word, end));
}

/* Splits the next word, and the blanks before it, from the line. */
static mk_str cut_word(mk_str *line, mk_str *gap)
{
    size_t blanks = 0;
    while (blanks < line->len && line->p[blanks] == ' ')
        blanks++;
    *gap = mk_str_first(*line, blanks);
    *line = mk_str_skip(*line, blanks);
    size_t len = mk_str_find(*line, ' ');
    mk_str word = mk_str_first(*line, len == MK_STR_NONE ? line->len : len);
    *line = mk_str_skip(*line, word.len);
    return word;
}

/* The words after one that names a secret are masked: `Password x`, `Set Authorization "Bearer x"`, `password=x`. The
 * pattern at the start of a route names none, and TLSKey names a file. A value that looks like a path may be a
 * secret. */
void mk_config_diff_mask(mk_str line, struct mk_buf *out)
{
    bool is_secret = false, is_masked = false;
    mk_str gap, first = MK_STR_NULL;
    while (line.len) {
        mk_str word = cut_word(&line, &gap), value = word, name = mk_str_cut(&value, '=');
        bool has_value = name.len < word.len && names_secret(name);
        if (!first.len)
            first = word;
        if (!is_masked)
            mk_buf_add(out, gap);
        if (is_secret) {
            mk_buf_add(out, is_masked ? MK_STR("") : MK_STR("********"));
            is_masked = true;
        } else if (has_value) {
            mk_buf_addf(out, "%.*s=********", MK_STR_ARG(name));
        } else {
            append_word(word, out);
        }
        bool is_pattern = word.p == first.p && mk_str_starts(word, MK_STR("/"));
        is_secret |= names_secret(word) && !is_pattern && !mk_str_eq_nocase(first, MK_STR("TLSKey"));
    }
}

/* ---- Comparing (Myers, "An O(ND) difference algorithm") ---- */

static bool lines_equal(const struct mk_config_line *a, const struct mk_config_line *b)
{
    return mk_str_eq(a->text, b->text) && mk_str_eq(a->section, b->section);
}

enum edit { KEEP, DELETE, INSERT };

struct comparison {
    const struct mk_config_line *a, *b;
    int n, m;
    int **trace; /* trace[d][k + d]: how far the path with d edits on the diagonal k goes in `a` */
    int edits;
    unsigned char *script; /* enum edit, in reverse order */
    size_t length;
};

static int furthest_start(const struct comparison *c, int d, int k)
{
    const int *before = c->trace[d - 1];
    bool down = k == -d || (k != d && before[k - 1 + d - 1] < before[k + 1 + d - 1]);
    return down ? before[k + 1 + d - 1] : before[k - 1 + d - 1] + 1;
}

static bool extend_paths(struct comparison *c, int d)
{
    int *row = c->trace[d] = mk_mem_zalloc((size_t)(2 * d + 1), sizeof *row);
    for (int k = -d; row && k <= d; k += 2) {
        int x = d ? furthest_start(c, d, k) : 0, y = x - k;
        while (x < c->n && y < c->m && y >= 0 && lines_equal(&c->a[x], &c->b[y]))
            x++, y++;
        row[k + d] = x;
        if (x >= c->n && y >= c->m)
            c->edits = d;
    }
    return row;
}

/* Finds the shortest script. After EDITS_MAX edits, or without memory, the script replaces everything. */
static bool find_paths(struct comparison *c)
{
    int most = c->n + c->m < EDITS_MAX ? c->n + c->m : EDITS_MAX;
    c->edits = -1;
    c->trace = mk_mem_zalloc((size_t)most + 1, sizeof *c->trace);
    for (int d = 0; c->trace && d <= most && c->edits < 0; d++)
        if (!extend_paths(c, d))
            break;
    return c->edits >= 0;
}

static void push(struct comparison *c, enum edit e, int times)
{
    while (times-- > 0)
        c->script[c->length++] = (unsigned char)e;
}

static void write_script(struct comparison *c)
{
    int x = c->n, y = c->m;
    for (int d = c->edits; d > 0; d--) {
        int k = x - y, start = furthest_start(c, d, k);
        const int *before = c->trace[d - 1];
        bool down = k == -d || (k != d && before[k - 1 + d - 1] < before[k + 1 + d - 1]);
        push(c, KEEP, x - start);
        push(c, down ? INSERT : DELETE, 1);
        y = start - k - down;
        x = start - !down;
    }
    push(c, KEEP, x);
}

static bool compare(struct comparison *c)
{
    c->script = mk_mem_alloc((size_t)(c->n + c->m) + 1);
    if (!c->script)
        return false;
    if (find_paths(c)) {
        write_script(c);
    } else {
        push(c, INSERT, c->m);
        push(c, DELETE, c->n);
    }
    return true;
}

static void free_comparison(struct comparison *c)
{
    for (int d = 0; c->trace && d <= EDITS_MAX && d <= c->n + c->m && c->trace[d]; d++)
        mk_mem_free(c->trace[d]);
    mk_mem_free(c->trace);
    mk_mem_free(c->script);
}

/* ---- Output ---- */

static void write_line(struct mk_buf *out, char mark, const struct mk_config_line *line)
{
    size_t start = out->len;
    mk_buf_add_char(out, mark);
    mk_config_diff_mask(line->shown, out);
    if (mark != ' ') {
        while (out->len - start < AT_COLUMN && !out->failed)
            mk_buf_add_char(out, ' ');
        mk_buf_addf(out, "  # %.*s", MK_STR_ARG(line->at));
    }
    mk_buf_add_char(out, '\n');
}

struct hunk {
    size_t from, to; /* in the script, in forward order */
    size_t a, b;     /* first lines */
};

static enum edit edit_at(const struct comparison *c, size_t i)
{
    return (enum edit)c->script[c->length - 1 - i];
}

/* If only one of two equal lines has a reference, the other one must not show its value. */
static const struct mk_config_line *shown_line(const struct comparison *c, enum edit e, size_t a, size_t b)
{
    bool is_b = e == INSERT || (e == KEEP && mk_str_eq(c->a[a].shown, c->a[a].text));
    return is_b ? &c->b[b] : &c->a[a];
}

/* Ends after the last edit that less than two contexts separate from the one before. */
static size_t find_hunk_end(const struct comparison *c, size_t from)
{
    size_t end = from, kept = 0;
    for (size_t i = from; i < c->length && kept <= 2 * CONTEXT; i++) {
        kept = edit_at(c, i) == KEEP ? kept + 1 : 0;
        if (!kept)
            end = i + 1;
    }
    return mk_min(end + CONTEXT, c->length);
}

static void write_hunk(const struct comparison *c, const struct hunk *h, struct mk_buf *out)
{
    size_t n_a = 0, n_b = 0, a = h->a, b = h->b;
    mk_str section = MK_STR_NULL;
    for (size_t i = h->from; i < h->to; i++) {
        enum edit e = edit_at(c, i);
        if (e != KEEP && !section.p)
            section = shown_line(c, e, h->a + n_a, h->b + n_b)->section_shown;
        n_a += e != INSERT;
        n_b += e != DELETE;
    }
    mk_buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@ %.*s\n", n_a ? a + 1 : a, n_a, n_b ? b + 1 : b, n_b,
                MK_STR_ARG(section));
    for (size_t i = h->from; i < h->to; i++) {
        enum edit e = edit_at(c, i);
        write_line(out, " -+"[e], shown_line(c, e, a, b));
        a += e != INSERT;
        b += e != DELETE;
    }
}

static void write_hunks(const struct comparison *c, struct mk_buf *out)
{
    size_t a = 0, b = 0, done = 0;
    for (size_t i = 0; i < c->length;) {
        if (edit_at(c, i) == KEEP) {
            i++, a++, b++;
            continue;
        }
        size_t context = mk_min(i - done, (size_t)CONTEXT);
        struct hunk h = {i - context, find_hunk_end(c, i), a - context, b - context};
        write_hunk(c, &h, out);
        for (; i < h.to; i++) {
            a += edit_at(c, i) != INSERT;
            b += edit_at(c, i) != DELETE;
        }
        done = i;
    }
}

bool mk_config_diff_write(const struct mk_config_lines *a, const struct mk_config_lines *b, mk_str a_name,
                          mk_str b_name, struct mk_buf *out)
{
    struct comparison c = {.a = a->at, .b = b->at, .n = (int)a->n, .m = (int)b->n};
    bool ok = compare(&c);
    if (ok && c.edits != 0) {
        mk_buf_addf(out, "--- %.*s\n+++ %.*s\n", MK_STR_ARG(a_name), MK_STR_ARG(b_name));
        write_hunks(&c, out);
    }
    free_comparison(&c);
    return ok && !out->failed;
}
