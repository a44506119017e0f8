/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a log line. Text from a client is escaped: it cannot insert a line break, close a
 * quote or send control characters to a terminal. */
#ifndef LOGGER_LOG_LINE_H
#define LOGGER_LOG_LINE_H

#include <monkey/access_record.h>
#include <monkey/buf.h>

enum {
    LOGGER_LINE_MAX = 16000, /* a line must fit into the blocks of 16 KB that the server writes */
    /* The maximum length of each string from the client, after escaping, as in the server's own log. */
    LOGGER_TEXT_MAX = 768,
    LOGGER_USER_MAX = 192,
    LOGGER_WORD_MAX = 64, /* the maximum length of all other values */
};

enum time_form { AS_CLF, AS_CLF_BRACKETS, AS_ISO, AS_UTC, AS_DAY, AS_OF_DAY, AS_SECONDS, TIME_FORMS };

/* A worker's cache of the time in text form, updated once a second. */
struct clock {
    struct clock_text {
        int64_t time;
        size_t len;
        char text[LOGGER_WORD_MAX];
    } as[TIME_FORMS];
    int64_t pid;
};

struct line {
    struct mk_buf out;
    const struct mk_access_record *record;
    const struct mk_request *request;
    struct clock *clock;
    bool json;
};

/* Appends text that needs no escaping. The buffer has space for the longest line. */
static inline void logger_line_append(struct line *line, mk_str text)
{
    struct mk_buf *out = &line->out;
    if (out->cap - out->len < text.len) {
        out->failed = true;
        return;
    }
    memcpy(out->p + out->len, text.p, text.len);
    out->len += text.len;
}

struct step;
typedef void logger_step_fn(struct line *line, const struct step *step);

struct step {
    logger_step_fn *write; /* NULL: writes `text` literally */
    mk_str text;           /* literal text or a header name */
    unsigned how;          /* additional parameter */
    bool keeps_blanks;     /* spaces need no escaping at this position */
};

/* A format directive, with one of the words allowed in its braces. */
struct directive {
    char letter;
    const char *word;      /* NULL: no braces. "": a header name */
    bool is_bare;          /* the value is a number, which JSON does not quote */
    unsigned how;          /* parameter of the step */
    size_t max;            /* maximum length of the output in bytes */
    logger_step_fn *write; /* NULL: writes a percent sign */
};

extern const struct directive logger_directives[];
extern const size_t logger_n_directives;

#endif
