/* SPDX-License-Identifier: Apache-2.0 */
/* A listing that is being sent to a client. */
#ifndef DIRLISTING_LISTING_H
#define DIRLISTING_LISTING_H

#include <monkey/body_source.h>
#include <monkey/config.h>
#include <monkey/request.h>

#include "entry_store.h"

enum theme { THEME_GUINEO, THEME_PLAIN };

struct settings {
    bool listing;
    unsigned theme, sort, order; /* enum theme, enum sort_key, 1: descending */
    uint32_t sort_max;
    size_t sort_memory;
    struct mk_conf_words hide;
};

/* The request of the client. */
struct listing_options {
    const struct format *format;
    bool format_is_asked; /* named in the query */
    enum sort_key sort;
    bool down;
};

enum step { STEP_COLLECT, STEP_SORT, STEP_HEAD, STEP_ENTRIES, STEP_FOOT, STEP_END };

struct listing {
    struct mk_request *request;
    struct mk_worker *worker;
    const struct settings *settings;
    size_t *shared; /* memory for entries of all listings of this worker */
    mk_str path;    /* ends with '/' */
    struct listing_options wish;
    enum step step;
    bool running;  /* a thread uses folder and store */
    bool closed;   /* the request is gone */
    bool is_large; /* too large to sort */
    unsigned turn; /* links resolved in this read */
    int error;
    size_t at;                     /* in the piece, or in the sorted entries */
    uint64_t n_shown, bytes_shown; /* of files */
    struct mk_buf out;
    size_t sent; /* of `out` */
    struct store store;
    struct folder folder;
};

/* A format. */
struct format {
    const char *word; /* ?format= */
    mk_str type;
    mk_str content_type;
    void (*write_head)(const struct listing *l, struct mk_buf *out);
    void (*entry)(const struct listing *l, const struct entry *e, struct mk_buf *out);
    void (*write_foot)(const struct listing *l, struct mk_buf *out);
};

extern const struct format dirlisting_format_html, dirlisting_format_json, dirlisting_format_text;
extern const mk_str dirlisting_theme_guineo, dirlisting_theme_plain; /* style sheets */
extern const char *const dirlisting_sort_words[];

/* The actual order of the entries. */
enum sort_key dirlisting_listing_sort_key(const struct listing *l);

extern const struct mk_body_source_ops dirlisting_source;
/* Takes ownership of `fd`, even if it returns NULL (out of memory). */
struct listing *dirlisting_listing_new(struct mk_request *request, int fd, const struct settings *settings,
                                       size_t *shared, const struct listing_options *wish);

/* "2026-01-31T12:00:00Z", or "2026-01-31<span> 12:00</span>"; nothing for a time without a date. */
void dirlisting_write_time(struct mk_buf *out, int64_t time, bool html);
/* A name for display: bytes that are not text, and characters that affect other text, become \xHH. */
void dirlisting_write_name(struct mk_buf *out, mk_str name, void (*write)(struct mk_buf *out, mk_str part));

#endif
