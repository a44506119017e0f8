/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/proc_parse.h"

#include "base/num.h"

/* Field numbers as in proc_pid_stat(5); the state is the first field after the name. */
enum { STATE = 3, PARENT = 4, USER = 14, SYSTEM, WAITED_USER, WAITED_SYSTEM, START = 22 };

static bool parse_stat_fields(mk_str rest, struct wr_stat *out)
{
    uint64_t parent;
    for (int i = STATE; i <= START; i++) {
        mk_str word = mk_str_word(&rest);
        bool good = word.len > 0;
        if (i == STATE)
            out->state = good ? word.p[0] : '?';
        else if (i == PARENT && (good = mk_num_parse(word, &parent)))
            out->parent = (pid_t)parent;
        else if (i == USER)
            good = mk_num_parse(word, &out->user);
        else if (i == SYSTEM)
            good = mk_num_parse(word, &out->system);
        else if (i == WAITED_USER)
            good = mk_num_parse(word, &out->waited_user);
        else if (i == WAITED_SYSTEM)
            good = mk_num_parse(word, &out->waited_system);
        else if (i == START)
            good = mk_num_parse(word, &out->start);
        if (!good)
            return false;
    }
    return true;
}

bool wr_stat_parse(mk_str text, struct wr_stat *out)
{
    size_t open = mk_str_find(text, '('), close = mk_str_find_last(text, ')');
    uint64_t pid;
    *out = (struct wr_stat){0};
    if (open == MK_STR_NONE || close == MK_STR_NONE || close < open ||
        !mk_num_parse(mk_str_trim(mk_str_first(text, open)), &pid))
        return false;
    out->pid = (pid_t)pid;
    mk_str name = mk_str_first(mk_str_skip(text, open + 1), close - open - 1);
    size_t len = mk_min(name.len, sizeof out->name - 1);
    if (len)
        memcpy(out->name, name.p, len);
    out->name[len] = '\0';
    text = mk_str_skip(text, close + 1);
    size_t end = mk_str_find(text, '\n');
    return parse_stat_fields(end == MK_STR_NONE ? text : mk_str_first(text, end), out);
}

bool wr_stat_is_dead(const struct wr_stat *s)
{
    return s->state == 'Z' || s->state == 'X' || s->state == 'x';
}

bool wr_proc_parse_named_number(mk_str text, mk_str name, uint64_t *out)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        if (line.len <= name.len || !mk_str_starts(line, name) || line.p[name.len] != ':')
            continue;
        line = mk_str_skip(line, name.len + 1);
        return mk_num_parse(mk_str_word(&line), out);
    }
    return false;
}

bool wr_schedstat_parse(mk_str text, struct wr_schedstat *out)
{
    return mk_num_parse(mk_str_word(&text), &out->ran) && mk_num_parse(mk_str_word(&text), &out->waited);
}

mk_str wr_proc_parse_cgroup(mk_str text)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        if (mk_str_starts(line, MK_STR("0::/")))
            return mk_str_skip(line, 3);
    }
    return MK_STR_NULL;
}

bool wr_cpu_stat_parse(mk_str text, struct wr_cpu_stat *out)
{
    unsigned found = 0;
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n'), name = mk_str_word(&line);
        uint64_t *place = mk_str_eq(name, MK_STR("usage_usec"))    ? &out->usage
                          : mk_str_eq(name, MK_STR("user_usec"))   ? &out->user
                          : mk_str_eq(name, MK_STR("system_usec")) ? &out->system
                                                                   : NULL;
        if (place && mk_num_parse(mk_str_word(&line), place))
            found++;
    }
    return found == 3;
}

static bool parse_hex(mk_str s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        int digit = mk_char_hex(s.p[i]);
        if (digit < 0 || *out >> 60)
            return false;
        *out = *out << 4 | (unsigned)digit;
    }
    return s.len > 0;
}

/* Parses "0100007F:1F90": each 32-bit word of the address, printed as a number in host byte order, and the
 * port. */
static bool parse_local_address(mk_str word, struct mk_sockaddr *out)
{
    enum { DIGITS = 8 };
    uint32_t parts[4];
    uint64_t number, port;
    mk_str address = mk_str_first(word, mk_str_find(word, ':'));
    size_t n = address.len / DIGITS;
    if (address.len % DIGITS || (n != 1 && n != MK_LEN(parts)) ||
        !parse_hex(mk_str_skip(word, address.len + 1), &port) || port > UINT16_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!parse_hex(mk_str_first(mk_str_skip(address, i * DIGITS), DIGITS), &number))
            return false;
        parts[i] = (uint32_t)number;
    }
    *out = (struct mk_sockaddr){.len = n == 1 ? sizeof out->v4 : sizeof out->v6};
    out->any.sa_family = n == 1 ? AF_INET : AF_INET6;
    memcpy(n == 1 ? (void *)&out->v4.sin_addr : (void *)&out->v6.sin6_addr, parts, n * sizeof *parts);
    mk_sockaddr_set_port(out, (uint16_t)port);
    return true;
}

bool wr_proc_parse_listener(mk_str line, unsigned port, struct wr_listener *out)
{
    enum { LOCAL = 1, STATE_AT = 3, INODE = 9, LISTENING = 10 };
    uint64_t number;
    *out = (struct wr_listener){.inode = 0};
    for (unsigned i = 0; i <= INODE; i++) {
        mk_str word = mk_str_word(&line);
        if (i == LOCAL && (!parse_local_address(word, &out->at) || mk_sockaddr_port(&out->at) != port))
            return false;
        if (i == STATE_AT && (!parse_hex(word, &number) || number != LISTENING))
            return false;
        if (i == INODE && (!mk_num_parse(word, &out->inode) || out->inode == 0))
            return false;
    }
    return true;
}

/* Spaces in a path are escaped as \040. */
static void unescape_mount_path(mk_str s, struct mk_buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        bool octal = s.p[i] == '\\' && i + 3 < s.len;
        for (size_t k = 1; octal && k <= 3; k++)
            octal = s.p[i + k] >= '0' && s.p[i + k] <= '7';
        if (!octal) {
            mk_buf_add_char(out, s.p[i]);
            continue;
        }
        mk_buf_add_char(out, (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 | (s.p[i + 3] - '0')));
        i += 3;
    }
}

bool wr_proc_parse_mount(mk_str mounts, mk_str type, struct mk_buf *out)
{
    while (mounts.len) {
        mk_str line = mk_str_cut(&mounts, '\n');
        (void)mk_str_word(&line);
        mk_str path = mk_str_word(&line);
        if (!mk_str_eq(mk_str_word(&line), type))
            continue;
        unescape_mount_path(path, out);
        return !out->failed;
    }
    return false;
}

bool wr_proc_parse_cpu_list(mk_str list, cpu_set_t *out)
{
    CPU_ZERO(out);
    while (list.p) {
        mk_str range = mk_str_cut(&list, ',');
        uint64_t first, last;
        size_t dash = mk_str_find(range, '-');
        if (!mk_num_parse(mk_str_first(range, dash), &first))
            return false;
        last = first;
        if (dash != MK_STR_NONE && !mk_num_parse(mk_str_skip(range, dash + 1), &last))
            return false;
        if (last < first || last >= CPU_SETSIZE)
            return false;
        for (uint64_t i = first; i <= last; i++)
            CPU_SET((size_t)i, out);
    }
    return CPU_COUNT(out) > 0;
}
