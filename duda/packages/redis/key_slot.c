/* SPDX-License-Identifier: Apache-2.0 */
/* Most commands have one key, after their name. The table lists the exceptions; for commands with several
 * keys that are not in the table, the server checks whether the keys share a slot. */
#include "key_slot.h"

#include <errno.h>
#include <monkey/text.h>
#include <stdint.h>

/* CRC-16/XMODEM, four bits at a time. */
static uint16_t crc16(mk_str text)
{
    static const uint16_t of[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    unsigned sum = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned byte = (unsigned char)text.p[i];
        sum = (sum << 4 ^ of[(sum >> 12 ^ byte >> 4) & 15]) & 0xffff;
        sum = (sum << 4 ^ of[(sum >> 12 ^ byte) & 15]) & 0xffff;
    }
    return (uint16_t)sum;
}

int redis_key_slot(mk_str key)
{
    const char *open = key.len ? memchr(key.p, '{', key.len) : NULL;
    if (open) {
        mk_str rest = mk_str_skip(key, (size_t)(open - key.p) + 1);
        const char *close = rest.len ? memchr(rest.p, '}', rest.len) : NULL;
        if (close && close > rest.p)
            key = mk_str_first(rest, (size_t)(close - rest.p));
    }
    return crc16(key) % REDIS_SLOTS;
}

/* ---- Positions of keys ---- */

enum kind {
    ONE,           /* one key, at `at` */
    EACH,          /* every `step`-th argument, starting at `at` */
    NUMBER,        /* the keys follow their number, which is at `at` */
    AFTER_STREAMS, /* the first half of the words after STREAMS */
    NONE
};

struct key_spec {
    mk_str name;
    unsigned char kind, at, step;
};

/* clang-format off */
#define SHAPE(name, kind, at, step) {MK_STR(name), kind, at, step}
/* clang-format on */

static const struct key_spec shapes[] = {
    SHAPE("MGET", EACH, 1, 1),           SHAPE("DEL", EACH, 1, 1),
    SHAPE("UNLINK", EACH, 1, 1),         SHAPE("EXISTS", EACH, 1, 1),
    SHAPE("TOUCH", EACH, 1, 1),          SHAPE("MSET", EACH, 1, 2),
    SHAPE("MSETNX", EACH, 1, 2),         SHAPE("SINTER", EACH, 1, 1),
    SHAPE("SUNION", EACH, 1, 1),         SHAPE("SDIFF", EACH, 1, 1),
    SHAPE("SINTERSTORE", EACH, 1, 1),    SHAPE("SUNIONSTORE", EACH, 1, 1),
    SHAPE("SDIFFSTORE", EACH, 1, 1),     SHAPE("PFCOUNT", EACH, 1, 1),
    SHAPE("PFMERGE", EACH, 1, 1),        SHAPE("RENAME", EACH, 1, 1),
    SHAPE("RENAMENX", EACH, 1, 1),       SHAPE("RPOPLPUSH", EACH, 1, 1),
    SHAPE("BITOP", EACH, 2, 1),          SHAPE("OBJECT", ONE, 2, 0),
    SHAPE("XGROUP", ONE, 2, 0),          SHAPE("XINFO", ONE, 2, 0),
    SHAPE("MEMORY", ONE, 2, 0),          SHAPE("EVAL", NUMBER, 2, 0),
    SHAPE("EVALSHA", NUMBER, 2, 0),      SHAPE("EVAL_RO", NUMBER, 2, 0),
    SHAPE("EVALSHA_RO", NUMBER, 2, 0),   SHAPE("FCALL", NUMBER, 2, 0),
    SHAPE("FCALL_RO", NUMBER, 2, 0),     SHAPE("ZUNION", NUMBER, 1, 0),
    SHAPE("ZINTER", NUMBER, 1, 0),       SHAPE("ZDIFF", NUMBER, 1, 0),
    SHAPE("ZINTERCARD", NUMBER, 1, 0),   SHAPE("SINTERCARD", NUMBER, 1, 0),
    SHAPE("LMPOP", NUMBER, 1, 0),        SHAPE("ZMPOP", NUMBER, 1, 0),
    SHAPE("BLMPOP", NUMBER, 2, 0),       SHAPE("BZMPOP", NUMBER, 2, 0),
    SHAPE("XREAD", AFTER_STREAMS, 0, 0), SHAPE("XREADGROUP", AFTER_STREAMS, 0, 0),
    SHAPE("PING", NONE, 0, 0),           SHAPE("ECHO", NONE, 0, 0),
    SHAPE("PUBLISH", NONE, 0, 0),        SHAPE("PUBSUB", NONE, 0, 0),
    SHAPE("SCRIPT", NONE, 0, 0),         SHAPE("FUNCTION", NONE, 0, 0),
    SHAPE("INFO", NONE, 0, 0),           SHAPE("TIME", NONE, 0, 0),
    SHAPE("DBSIZE", NONE, 0, 0),         SHAPE("KEYS", NONE, 0, 0),
    SHAPE("SCAN", NONE, 0, 0),           SHAPE("RANDOMKEY", NONE, 0, 0),
    SHAPE("FLUSHALL", NONE, 0, 0),       SHAPE("FLUSHDB", NONE, 0, 0),
    SHAPE("CLUSTER", NONE, 0, 0),        SHAPE("COMMAND", NONE, 0, 0),
    SHAPE("CONFIG", NONE, 0, 0),         SHAPE("ACL", NONE, 0, 0),
    SHAPE("LATENCY", NONE, 0, 0),        SHAPE("SLOWLOG", NONE, 0, 0),
    SHAPE("WAIT", NONE, 0, 0),           SHAPE("WAITAOF", NONE, 0, 0),
    SHAPE("ROLE", NONE, 0, 0),           SHAPE("LASTSAVE", NONE, 0, 0),
    SHAPE("LOLWUT", NONE, 0, 0),         SHAPE("DEBUG", NONE, 0, 0)};

static const struct key_spec *find_key_spec(mk_str command)
{
    static const struct key_spec usual = SHAPE("", ONE, 1, 0);
    for (size_t i = 0; i < MK_LEN(shapes); i++)
        if (shapes[i].name.len == command.len && mk_str_eq_nocase(shapes[i].name, command))
            return &shapes[i];
    return &usual;
}

static size_t parse_number(mk_str text, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len && n <= max; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return 0;
        n = 10 * n + (size_t)(text.p[i] - '0');
    }
    return n < max ? n : max;
}

struct span {
    size_t first, end, step;
};

static struct span keys_after_streams(const mk_str *parts, size_t n)
{
    size_t i = 1;
    while (i < n && !mk_str_eq_nocase(parts[i], MK_STR("STREAMS")))
        i++;
    return i + 1 < n ? (struct span){i + 1, i + 1 + (n - i - 1) / 2, 1} : (struct span){0, 0, 1};
}

static struct span command_keys(const mk_str *parts, size_t n)
{
    const struct key_spec *s = find_key_spec(parts[0]);
    size_t at = s->at;
    switch (s->kind) {
    case ONE:
        return at < n ? (struct span){at, at + 1, 1} : (struct span){0, 0, 1};
    case EACH:
        return (struct span){at, n, s->step};
    case NUMBER:
        return at < n ? (struct span){at + 1, at + 1 + parse_number(parts[at], n - at - 1), 1}
                      : (struct span){0, 0, 1};
    case AFTER_STREAMS:
        return keys_after_streams(parts, n);
    default:
        return (struct span){0, 0, 1};
    }
}

int redis_command_slot(const mk_str *parts, size_t n, struct redis_crossslot *crossslot)
{
    struct span keys = command_keys(parts, n);
    int slot = REDIS_NO_KEY;
    for (size_t i = keys.first; i < keys.end; i += keys.step) {
        int other = redis_key_slot(parts[i]);
        if (slot >= 0 && slot != other) {
            *crossslot = (struct redis_crossslot){parts[keys.first], parts[i], slot, other};
            return -EXDEV;
        }
        slot = other;
    }
    return slot;
}

bool redis_is_reserved_key(mk_str part)
{
    return mk_str_starts(part, MK_STR(REDIS_RESERVED_PREFIX));
}
