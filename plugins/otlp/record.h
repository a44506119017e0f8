/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which workers pass spans to monkey-otlp through a pipe. All records have the same size, of which a pipe
 * writes and reads a multiple at once, so that several workers and helpers can use the pipe without locks. */
#ifndef OTLP_RECORD_H
#define OTLP_RECORD_H

#include <monkey/str.h>
#include <stdint.h>

enum { OTLP_RECORD_SIZE = 1024, OTLP_RECORD_DATA = OTLP_RECORD_SIZE - 64 };

/* What an item of a record is. */
enum otlp_item_kind {
    OTLP_ITEM_NAME = 1, /* name of the span */
    OTLP_ITEM_ERROR,    /* why the operation failed */
    OTLP_ITEM_STATE,    /* tracestate */
    OTLP_ITEM_TEXT,     /* an attribute */
    OTLP_ITEM_INT,      /* an attribute; the value is an int64_t */
};

struct otlp_record {
    unsigned char trace_id[16], span_id[8], parent_id[8];
    uint64_t began_ns, ended_ns; /* since the Unix epoch */
    uint8_t kind;                /* enum mk_span_kind */
    uint8_t has_parent, failed;
    uint8_t unused[11];
    uint16_t len;                         /* bytes of `data` */
    unsigned char data[OTLP_RECORD_DATA]; /* items: their heads, names and values */
};

/* Precedes the name and the value of an item. */
struct otlp_item_head {
    uint8_t kind, name_len;
    uint16_t value_len;
};

_Static_assert(sizeof(struct otlp_record) == OTLP_RECORD_SIZE, "records have a fixed size");

#endif
