/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked transfer coding, undone piece by piece (RFC 9112, section 7.1). Copies nothing: data are slices
 * of the input. Extensions are checked and ignored, trailers are checked like fields and handed over as they
 * are. */
#ifndef MK_HTTP_CHUNKED_H
#define MK_HTTP_CHUNKED_H

#include "base/str.h"

struct mk_chunked {
    uint64_t left;   /* of the chunk: bytes to come, or its size so far */
    uint64_t total;  /* sizes of all chunks so far, known as soon as their size line is: compare it with the
                        limit */
    size_t overhead; /* bytes of extensions or trailers that count against the limit */
    size_t overhead_max;
    uint8_t state;
    uint8_t digits;
    bool pads;      /* blanks may follow the size */
    int16_t failed; /* what every later call answers, if it is not 0 */
};

enum {
    MK_CHUNKED_MORE,     /* all of *in was used, and the end is not reached */
    MK_CHUNKED_DATA,     /* *data is a piece of the body, never empty; call again, *in may hold more */
    MK_CHUNKED_TRAILERS, /* *data is a piece of the trailer section, never empty: whole lines when they are
                            joined */
    MK_CHUNKED_END,      /* the body is complete; *in is what follows it */
};

/* `trailers_max` bounds the bytes of all trailers, and those of the extensions that are out of proportion to
 * the data they come with. */
void mk_chunked_init(struct mk_chunked *c, size_t trailers_max);

/* The same for a response: some servers fill the line of the size up with blanks. From a client that is 400, as two
 * programs may read it in two ways. */
void mk_chunked_init_allow_padding(struct mk_chunked *c, size_t trailers_max);

/* Takes what it can from the beginning of *in and moves *in behind it. Answers one of the above, or a status,
 * negated: 400 for what is not the coding to the letter, 413 for a size of more than 16 digits or a sum
 * beyond 64 bits, 431 for too many bytes of extensions or trailers. After an error, and after the end, the
 * answer stays the same. */
int mk_chunked_decode(struct mk_chunked *c, mk_str *in, mk_str *data) MK_MUST_USE;

#endif
