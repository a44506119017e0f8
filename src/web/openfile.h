/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a site, kept open: what was found beneath a root under a path, looked at again at most once a
 * second.
 *
 * Small files are kept in memory while there is room for them, others as a descriptor. Room is for those who
 * came first: when all of a large site is asked for in turn, each would else throw out what comes next. One
 * that found none gets it, when it is looked at again, from those that nobody asked for meanwhile.
 *
 * An entry is replaced, never changed, when the file behind the name changed; who still sends the old one
 * holds a reference. Errors are not remembered. Knows nothing of HTTP. */
#ifndef MK_WEB_OPENFILE_H
#define MK_WEB_OPENFILE_H

#include "base/hash.h"
#include "base/list.h"
#include "os/file.h"

/* A folder that requests look beneath. */
struct mk_root {
    int fd;
    const char *path; /* for messages */
    struct mk_file_how how;
};

/* Something derived from a file by whoever uses it, to be kept with it. */
struct mk_open_file_note {
    void (*free)(struct mk_open_file_note *note);
};

enum mk_open_kind { MK_OPEN_FILE, MK_OPEN_FOLDER, MK_OPEN_OTHER };

struct mk_open_file {
    const struct mk_root *root;
    enum mk_open_kind kind;
    int fd;         /* of a file that is not in memory, else -1 */
    mk_str content; /* of a small file; absent if it is not in memory */
    uint64_t size;
    int64_t mtime_ns;
    struct mk_open_file_note *note; /* NULL, or what somebody derived from the file; freed with it */
    uint64_t warm_until_ms; /* until then its pages are taken to be in memory (see proto/coldread.h) */

    /* The cache's own. */
    struct mk_file_cache *cache;
    struct mk_open_file *next; /* in its bucket */
    struct mk_list used;       /* in one of the cache's lists */
    mk_str path;
    uint64_t hash, checked_ms, used_ms;
    uint64_t tried_ms; /* when room in memory was last looked for */
    int64_t ctime_ns;
    dev_t dev;
    ino_t ino;
    unsigned refs; /* one of them is the table's, while it is listed */
    bool listed;
};

struct mk_file_cache_limits {
    unsigned files;      /* entries, each may hold a descriptor; 0: nothing is kept */
    size_t memory;       /* for the content of small files */
    size_t small;        /* a file up to this size is kept in memory */
    unsigned recheck_ms; /* how long an entry is believed */
};

struct mk_file_cache {
    struct mk_file_cache_limits limits;
    struct mk_hash_key hash_key;
    struct mk_open_file **buckets;
    size_t n_buckets;                     /* a power of two */
    struct mk_list with_content, without; /* least recently used first */
    unsigned n, turned_away;
    size_t memory;
};

mk_err mk_file_cache_init(struct mk_file_cache *c, const struct mk_file_cache_limits *limits) MK_MUST_USE;
/* References may still be out; their files are freed as they are dropped. */
void mk_file_cache_fini(struct mk_file_cache *c);

/* What root/path is now. `path` is relative, without NUL, dot parts or a slash at its ends; "" is the root
 * itself. *file is a reference, to be dropped. Errors as from mk_file_open_beneath; -EMFILE and -ENFILE after
 * all idle entries were closed. */
mk_err mk_file_cache_take(struct mk_file_cache *c, const struct mk_root *root, mk_str path, uint64_t now_ms,
                          struct mk_open_file **file) MK_MUST_USE;
/* The same for what is of use only if it is kept: -EAGAIN, without looking, when there is no place for it. */
mk_err mk_file_cache_take_kept(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                               uint64_t now_ms, struct mk_open_file **file) MK_MUST_USE;
void mk_open_file_drop(struct mk_open_file *f);
/* A file of which the first `size` bytes matter, in no cache: a reference, which owns the descriptor. NULL
 * when memory is out: the descriptor is still the caller's. */
struct mk_open_file *mk_open_file_wrap(int fd, uint64_t size) MK_MUST_USE;
/* A descriptor of root/path that is the caller's; `path` as above, and it may end with a slash. Nothing is
 * remembered, but idle entries make room for it. */
mk_err mk_file_cache_open(struct mk_file_cache *c, const struct mk_root *root, mk_str path,
                          int *fd) MK_MUST_USE;
/* Who asks for its path from now on gets it anew; those who use it keep it. For the holder of a reference. */
void mk_open_file_forget(struct mk_open_file *f);

/* Closes whatever nobody uses; answers how many descriptors came free. */
unsigned mk_file_cache_shed(struct mk_file_cache *c);
/* Lets go of whatever nobody uses, what is in memory, too. */
void mk_file_cache_clear(struct mk_file_cache *c);

#endif
