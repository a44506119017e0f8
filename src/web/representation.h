/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP metadata of a file: type, validators, caching, and its precompressed variants. Computed once per open
 * file and cached with it, so a request only has to select a representation. */
#ifndef MK_WEB_REPRESENTATION_H
#define MK_WEB_REPRESENTATION_H

#include "http/precondition.h"
#include "web/response.h"
#include "web/vhost.h"

enum { MK_CODINGS = 3 }; /* br, zstd, gzip: in order of preference */

struct mk_representation {
    struct mk_open_file *file;
    struct mk_validators validators;
    struct mk_header_block about; /* ETag, Last-Modified, Cache-Control, Vary: for 200, 206 and 304 */
    struct mk_header_block form;  /* Content-Type, Content-Encoding, Accept-Ranges: for 200 and 206 */
    struct mk_header_block whole; /* the fields of `about` and `form` */
    mk_str type;
    bool coded;                       /* a precompressed variant */
    char *room;                       /* memory of all strings of the representation */
    struct mk_header_field fields[8]; /* fields of `about`, followed by those of `form` */
};

/* Appends a header line to the text of a block and stores its name and value. `about` must be complete before
 * `form` begins. */
void mk_representation_append_header(struct mk_representation *r, struct mk_header_block *b,
                                     struct mk_buf *text, mk_str name, mk_str value);

/* Selects the representation that suits the request best: the file itself, or a precompressed variant. The
 * result is valid as long as the reference to `file`. NULL: out of memory. */
const struct mk_representation *mk_representation_choose(struct mk_open_file *file,
                                                         const struct mk_vhost *host,
                                                         const struct mk_headers *request_headers,
                                                         uint64_t now_ms);

#endif
