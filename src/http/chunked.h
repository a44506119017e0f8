/* SPDX-License-Identifier: Apache-2.0 */
/* Decoder for the chunked transfer coding (RFC 9112, section 7.1). Copies nothing: the returned data is a
 * slice of the input. Extensions are validated and ignored; trailers are validated like headers and returned
 * unparsed. */
#ifndef MK_HTTP_CHUNKED_H
#define MK_HTTP_CHUNKED_H

#include "base/str.h"

struct mk_chunked {
    uint64_t left;   /* bytes left in the chunk, or its size parsed so far */
    uint64_t total;  /* sum of the sizes of all chunks whose size line was parsed: the caller compares it with
                      * its body limit */
    size_t overhead; /* bytes of extensions or trailers that count against overhead_max */
    size_t overhead_max;
    uint8_t state;
    uint8_t digits;
    bool allows_padding; /* allow white space after the size */
    int16_t failed;      /* negated status that all later calls return; 0: none */
};

enum {
    MK_CHUNKED_MORE,     /* all input was consumed, but the end was not reached */
    MK_CHUNKED_DATA,     /* *data is a piece of the body, never empty; call again, because *in may hold more
                            data */
    MK_CHUNKED_TRAILERS, /* *data is a piece of the trailer section, never empty; the concatenated pieces
                          * form whole lines */
    MK_CHUNKED_END,      /* the body is complete; *in is the data after it */
};

/* `trailers_max` limits the bytes of all trailers and, separately, the bytes by which extensions exceed 16
 * bytes per size line plus half the size of its chunk. */
void mk_chunked_init(struct mk_chunked *c, size_t trailers_max);

/* Like mk_chunked_init(), but for responses: some servers pad the size line with spaces. A client that does
 * so gets a 400, because two programs may parse the line differently. */
void mk_chunked_init_allow_padding(struct mk_chunked *c, size_t trailers_max);

/* Consumes input: moves *in forward. Returns one of the events above, or a negated status: 400 for a syntax
 * error, 413 for a size of more than 16 digits or a total size beyond 64 bits, 431 for too many bytes of
 * extensions or trailers. After an error or the end, further calls return the same result. */
int mk_chunked_decode(struct mk_chunked *c, mk_str *in, mk_str *data) MK_MUST_USE;

#endif
