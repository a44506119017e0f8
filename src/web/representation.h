/* SPDX-License-Identifier: Apache-2.0 */
/* What HTTP says about a file: type, validators, caching, and its neighbours that hold the same thing
 * compressed. Made once for an open file and kept with it, so that a request only picks. */
#ifndef MK_WEB_REPRESENTATION_H
#define MK_WEB_REPRESENTATION_H

#include "http/condition.h"
#include "web/response.h"
#include "web/vhost.h"

enum { MK_CODINGS = 3 }; /* br, zstd, gzip: in the order of preference */

struct mk_representation {
    struct mk_open_file *file;
    struct mk_validators validators;
    struct mk_header_block about; /* ETag, Last-Modified, Cache-Control, Vary: for 200, 206 and 304 */
    struct mk_header_block form;  /* Content-Type, Content-Encoding, Accept-Ranges: for 200 and 206 */
    struct mk_header_block whole; /* both of them */
    mk_str type;
    bool coded;                       /* a precompressed neighbour */
    char *room;                       /* of all its text */
    struct mk_header_field fields[8]; /* of both, one after the other */
};

/* The representation of the file that suits the request best: itself, or a precompressed neighbour. It lives
 * as long as the reference to `file`. NULL when memory is out. */
const struct mk_representation *mk_representation_choose(struct mk_open_file *file,
                                                         const struct mk_vhost *host,
                                                         const struct mk_headers *wishes, uint64_t now_ms);

#endif
