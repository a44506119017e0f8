/* SPDX-License-Identifier: Apache-2.0 */
/* What a section may hold, as data: from one table come the reading, the messages, `monkey -T` and the
 * reference page.
 *
 *     struct cache { uint64_t size; uint64_t ttl_ms; bool on; };
 *     static const struct mk_conf_key cache_keys[] = {
 *         {.name = "Cache", .type = MK_CONF_BOOL, MK_CONF_AT(struct cache, on), .def = "on",
 *          .help = "Keep answers in memory."},
 *         {.name = "CacheSize", .type = MK_CONF_SIZE, MK_CONF_AT(struct cache, size), .def = "16M", .min = 1
 * << 20, .help = "Memory for it."},
 *         {.name = "CacheTime", .type = MK_CONF_TIME, MK_CONF_AT(struct cache, ttl_ms), .def = "1m", .zero =
 * "off", .help = "How long an answer is good."},
 *     };
 *     const struct mk_conf_table cache_table = {.section = "CACHE", .keys = cache_keys, .n =
 * MK_LEN(cache_keys)};
 */
#ifndef MK_CONF_TABLE_H
#define MK_CONF_TABLE_H

#include "conf/tree.h"
#include "conf/words.h"

/* The type of a value, and the field in the struct. */
enum mk_conf_type {
    MK_CONF_BOOL,   /* bool */
    MK_CONF_NUM,    /* an unsigned integer of 1, 2, 4 or 8 bytes */
    MK_CONF_SIZE,   /* the same, in bytes */
    MK_CONF_TIME,   /* the same, in milliseconds */
    MK_CONF_TEXT,   /* mk_str */
    MK_CONF_WORDS,  /* struct mk_conf_words; a repeated key appends */
    MK_CONF_ENUM,   /* an enum or unsigned integer: the index of the choice */
    MK_CONF_CUSTOM, /* whatever parse() fills */
    MK_CONF_TYPES
};

enum mk_conf_flags {
    MK_CONF_REPEATABLE = 1,   /* may stand more than once: parse() is called each time (WORDS always may) */
    MK_CONF_REQUIRED = 2,     /* the section must have it */
    MK_CONF_MAY_BE_EMPTY = 4, /* `Key` and `Key ""` are fine: TEXT, WORDS and CUSTOM only */
    MK_CONF_DEPRECATED = 8,   /* works, with a warning that names alias_of if there is one */
    MK_CONF_IGNORED = 16      /* was a key once and does nothing now: a warning, the value is not looked at */
};

struct mk_conf_key;
struct mk_conf_table;

/* What a function that reads one value is told. */
struct mk_conf_spot {
    struct mk_arena *arena; /* lives as long as the struct */
    struct mk_conf_report *report;
    const struct mk_conf_table *table;
    const struct mk_conf_key *key;     /* NULL for an entry of free form */
    const struct mk_conf_entry *entry; /* NULL for a default */
    void *out;                         /* the struct that is being filled */
};

/* Reports an error at `part`, a slice of the value (or of the key) of the entry; an absent one means the
 * whole value. A hint may follow with mk_conf_report_hint(spot->report, ...). */
void mk_conf_spot_error(const struct mk_conf_spot *spot, mk_str part, const char *fmt, ...) MK_PRINTF(3, 4);

/* Reads `value` into `field` (all zero before the first call). False if it is wrong: then it has told so with
 * mk_conf_spot_error(), or the caller says that key->form was expected. Out of memory: report->no_memory. */
typedef bool mk_conf_parse_fn(const struct mk_conf_spot *spot, mk_str value, void *field);
/* Writes the i-th value of the field as parse() takes it; false if there is no such one. */
typedef bool mk_conf_show_fn(const void *field, size_t i, struct mk_buf *out);
/* Takes one entry (spot->entry) whose key is none of the table's; its value is not empty. It reports what is
 * wrong. */
typedef void mk_conf_entry_fn(const struct mk_conf_spot *spot);
/* Writes key and value of the i-th entry of free form; false if there is no such one. */
typedef bool mk_conf_show_entry_fn(const void *in, size_t i, struct mk_buf *key, struct mk_buf *value);

struct mk_conf_key {
    const char *name;
    enum mk_conf_type type;
    unsigned flags;
    size_t offset, size;        /* of the field: MK_CONF_AT */
    uint64_t min, max;          /* NUM, SIZE, TIME: of the value, TEXT: of its length; WORDS: max of them;
                                   a max of 0 is what the field can hold */
    uint64_t unit;              /* what a bare number counts; SIZE: bytes (0 is 1), TIME: ms (0 is 1000) */
    const char *zero;           /* NUM, SIZE, TIME: a word for 0 ("auto", "off"), good even below min */
    const char *const *choices; /* ENUM: the words, ended by NULL; compared without case */
    const char *def;            /* the default as one would write it; NULL: the field stays as it was */
    const char *form;           /* CUSTOM: what a value looks like ("port or address:port") */
    const char *alias_of; /* the key that this is another name of; all but name and flags is that one's */
    const char *help;     /* one line, Markdown allowed */
    mk_conf_parse_fn *parse;
    mk_conf_show_fn *show; /* NULL: a CUSTOM key that cannot be printed is left out */
};

#define MK_CONF_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

struct mk_conf_table {
    const char *section;
    const struct mk_conf_key *keys;
    size_t n;
    bool repeatable; /* the section may stand more than once */
    const char *help;
    /* For sections whose keys are patterns, codes or names (ROUTES, ERROR_PAGES, MIMETYPES): takes the
     * entries that no key above takes. NULL: those are errors. */
    mk_conf_entry_fn *entry;
    mk_conf_show_entry_fn *show_entry;
    const char *entry_form; /* what such an entry looks like: "pattern handler [words...]" */
    const char *entry_help;
};

/* The key of that name, without case, or what it is an alias of if `follow`; NULL if there is none. */
const struct mk_conf_key *mk_conf_table_find(const struct mk_conf_table *t, mk_str name, bool follow);
/* The largest value that the key takes. */
uint64_t mk_conf_table_max(const struct mk_conf_key *k);
/* What a value of the key looks like: "a number from 1 to 64", "one of on, off". */
void mk_conf_table_form(const struct mk_conf_key *k, struct mk_buf *out);

#endif
