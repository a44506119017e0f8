/* SPDX-License-Identifier: Apache-2.0 */
#include "passwd_command.h"

#include "hash.h"
#include "passwd_file.h"
#include "terminal.h"
#include "verify.h"

#include <crypt.h>
#include <errno.h>
#include <getopt.h>
#include <monkey/mem.h>
#include <monkey/utf8.h>
#include <stdio.h>
#include <unistd.h>

enum { FINE = 0, FAILED = 1, USAGE = 2, DIGEST_TEXT_MAX = 2 * AUTH_HASH_MAX };

struct order {
    const char *path;
    mk_str user, realm, kind; /* `realm` is present only for Digest */
    uint64_t cost;            /* 0: default of the scheme */
    bool creates, deletes, help;
};

static const char usage[] = "usage: monkey passwd [-c] [-b KIND] [-r COST] [--digest REALM] FILE USER\n"
                            "       monkey passwd -D [--digest REALM] FILE USER\n";

static const char help[] =
    "\n"
    "Adds a user to a password file, or changes the password of a user. The command reads the password from\n"
    "the terminal or from the first line of a pipe, because other users can see arguments.\n"
    "\n"
    "  -c, --create         create the file if it does not exist\n"
    "  -D, --delete         delete the user\n"
    "  -b, --kind KIND      hash of the password: yescrypt (default), bcrypt, sha512, sha256;\n"
    "                       with --digest: sha256 (default) or md5\n"
    "  -r, --cost COST      computing cost of the hash, see crypt(5)\n"
    "  -d, --digest REALM   add an entry for Digest; REALM is the Realm of the section [AUTH]\n"
    "  -h, --help           print this help\n"
    "\n"
    "The server reads the file when it loads its configuration: reload it with SIGHUP.\n";

static int print_error(int code, const char *what, const char *about)
{
    fprintf(stderr, "monkey passwd: %s%s%s\n", about ? about : "", about ? ": " : "", what);
    return code;
}

/* ---- The command line ---- */

static bool is_valid_name_field(mk_str s)
{
    return s.len && auth_has_no_controls(s) && mk_utf8_find_invalid(s) == MK_STR_NONE &&
           mk_str_find(s, ':') == MK_STR_NONE && mk_str_trim(s).len == s.len;
}

static int check_passwd_options(const struct order *o)
{
    bool digest = o->realm.p != NULL;
    if (!is_valid_name_field(o->user) || o->user.len > AUTH_NAME_MAX || o->user.p[0] == '#')
        return print_error(USAGE,
                           "invalid user name: expected 1 to 255 bytes of UTF-8 without ':', not starting "
                           "with '#' or a space",
                           NULL);
    if (digest && (!is_valid_name_field(o->realm) || mk_str_find(o->realm, '"') != MK_STR_NONE ||
                   mk_str_find(o->realm, '\\') != MK_STR_NONE))
        return print_error(USAGE, "invalid realm: expected UTF-8 without ':', '\"' and '\\'", NULL);
    if (digest && o->kind.p && !mk_str_eq(o->kind, MK_STR("sha256")) && !mk_str_eq(o->kind, MK_STR("md5")))
        return print_error(USAGE, "expected sha256 or md5 with --digest", o->kind.p);
    if (!digest && o->kind.p && !auth_hash_scheme_find(o->kind))
        return print_error(USAGE, "expected yescrypt, bcrypt, sha512 or sha256", o->kind.p);
    if (o->deletes && (o->creates || o->kind.p || o->cost))
        return print_error(USAGE, "-D accepts no option except --digest", NULL);
    if (digest && o->cost)
        return print_error(USAGE, "--cost cannot be combined with --digest", NULL);
    return FINE;
}

static int parse_option(struct order *o, int letter, const char *value)
{
    switch (letter) {
    case 'c':
        o->creates = true;
        return FINE;
    case 'D':
        o->deletes = true;
        return FINE;
    case 'b':
        o->kind = mk_str_from_c(value);
        return FINE;
    case 'd':
        o->realm = mk_str_from_c(value);
        return FINE;
    case 'r':
        if (mk_num_parse(mk_str_from_c(value), &o->cost) && o->cost > 0 && o->cost < 1000000000)
            return FINE;
        return print_error(USAGE, "invalid cost: expected a number", value);
    case 'h':
        o->help = true;
        return FINE;
    default:
        fputs(usage, stderr);
        return USAGE;
    }
}

static int parse_arguments(int argc, char **argv, struct order *o)
{
    static const struct option names[] = {
        {"create", no_argument, NULL, 'c'},
        {"delete", no_argument, NULL, 'D'},
        {"kind", required_argument, NULL, 'b'},
        {"cost", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {"digest", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    int letter, code = FINE;
    optind = 0; /* glibc: restart */
    while (code == FINE && (letter = getopt_long(argc, argv, "cDb:r:d:h", names, NULL)) != -1)
        code = parse_option(o, letter, optarg);
    if (code != FINE || o->help)
        return code;
    if (argc - optind == 3)
        return print_error(USAGE,
                           "a password as an argument is visible to other users: enter it at the prompt",
                           "too many arguments");
    if (argc - optind != 2) {
        fputs(usage, stderr);
        return USAGE;
    }
    o->path = argv[optind];
    o->user = mk_str_from_c(argv[optind + 1]);
    return check_passwd_options(o);
}

/* ---- The password ---- */

static const char *password_problem(const struct order *o, mk_str password)
{
    const struct auth_hash_scheme *kind = o->kind.p && !o->realm.p ? auth_hash_scheme_find(o->kind) : NULL;
    if (password.len == 0)
        return "the password is empty";
    if (!auth_has_no_controls(password))
        return "the password contains a control character";
    if (mk_utf8_find_invalid(password) != MK_STR_NONE)
        return "the password is not UTF-8, the encoding that browsers use";
    if (kind && password.len > kind->password)
        return "bcrypt ignores all but the first 72 bytes of a password: choose another hash";
    return NULL;
}

static int print_read_error(int e)
{
    return print_error(FAILED,
                       e == -ENODATA ? "no password was entered"
                       : e == -E2BIG ? "the password is too long"
                                     : strerror(-e),
                       NULL);
}

static int read_password(char buf[AUTH_LINE_BUF_SIZE], mk_str *password)
{
    char again[AUTH_LINE_BUF_SIZE];
    mk_str second;
    if (!auth_stdin_is_terminal()) {
        int e = auth_stdin_read_line(buf, password);
        return e ? print_read_error(e) : FINE;
    }
    int e = auth_terminal_read_password("New password: ", buf, password);
    if (!e)
        e = auth_terminal_read_password("Repeat password: ", again, &second);
    int code = e ? print_read_error(e)
               : mk_str_eq(*password, second)
                   ? FINE
                   : print_error(FAILED, "the passwords differ: nothing was changed", NULL);
    explicit_bzero(again, sizeof again);
    return code;
}

/* ---- Its hash ---- */

static int hash_for_digest(const struct order *o, mk_str password, char out[CRYPT_OUTPUT_SIZE])
{
    enum auth_hash kind = mk_str_eq(o->kind, MK_STR("md5")) ? AUTH_MD5 : AUTH_SHA256;
    mk_str parts[] = {o->user, o->realm, password};
    uint8_t sum[AUTH_HASH_MAX];
    struct mk_buf b = mk_buf_fixed(out, DIGEST_TEXT_MAX);
    auth_hash_joined(kind, parts, 3, sum);
    mk_hex_encode(&b, mk_str_of((const char *)sum, auth_hash_len(kind)));
    out[b.len] = '\0';
    return FINE;
}

static int hash_for_basic(const struct order *o, const char *password, char out[CRYPT_OUTPUT_SIZE])
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    const struct auth_hash_scheme *kind = o->kind.p ? auth_hash_scheme_find(o->kind) : &auth_hash_schemes[0];
    unsigned long cost = o->cost ? (unsigned long)o->cost : kind->cost;
    if (!crypt_gensalt_rn(kind->prefix, cost, NULL, 0, setting, sizeof setting))
        return print_error(errno == EINVAL || errno == ERANGE ? USAGE : FAILED,
                           errno == EINVAL || errno == ERANGE ? "libcrypt does not support this cost"
                                                              : strerror(errno),
                           kind->name);
    struct crypt_data *data = mk_mem_zalloc(1, sizeof *data);
    const char *made = data ? crypt_rn(password, setting, data, (int)sizeof *data) : NULL;
    int code = made ? FINE : print_error(FAILED, strerror(errno), kind->name);
    if (made)
        memcpy(out, made, strlen(made) + 1);
    if (data)
        explicit_bzero(data, sizeof *data);
    mk_mem_free(data);
    return code;
}

static int read_and_hash_password(const struct order *o, char out[CRYPT_OUTPUT_SIZE])
{
    char buf[AUTH_LINE_BUF_SIZE];
    mk_str password = {NULL, 0};
    int code = read_password(buf, &password);
    if (code == FINE) {
        const char *fault = password_problem(o, password);
        code = fault        ? print_error(FAILED, fault, NULL)
               : o->realm.p ? hash_for_digest(o, password, out)
                            : hash_for_basic(o, buf, out);
    }
    explicit_bzero(buf, sizeof buf);
    return code;
}

/* ---- The command ---- */

static int edit_password_file(const struct order *o, mk_str hash)
{
    static const char *const words[] = {
        [AUTH_ADDED] = "added to", [AUTH_CHANGED] = "changed in", [AUTH_DELETED] = "deleted from"};
    const struct auth_passwd_entry entry = {.name = o->user, .realm = o->realm, .hash = hash};
    enum auth_edit done;
    const char *error;
    if (!auth_passwd_file_edit(o->path, o->creates, &entry, &done, &error)) {
        fprintf(stderr, "monkey passwd: %s: cannot %s: %s\n", o->path, error, strerror(errno));
        return FAILED;
    }
    if (done == AUTH_NOT_THERE)
        return print_error(FAILED, "no such user in the file", o->path);
    printf("%.*s was %s %s.\n", MK_STR_ARG(o->user), words[done], o->path);
    return fflush(stdout) == 0 ? FINE : FAILED;
}

/* Checks the path before the command prompts for a password. */
static int print_path_error(const struct order *o)
{
    int e = errno;
    print_error(FAILED, strerror(e), o->path);
    if (e == ENOENT && !o->deletes)
        fputs("Use -c to create it.\n", stderr);
    return FAILED;
}

static int run_passwd(int argc, char **argv)
{
    struct order o = {0};
    char hash[CRYPT_OUTPUT_SIZE];
    int code = parse_arguments(argc, argv, &o);
    if (code != FINE)
        return code;
    if (o.help) {
        printf("%s%s", usage, help);
        return FINE;
    }
    if (!o.creates && access(o.path, F_OK) != 0)
        return print_path_error(&o);
    if (o.deletes)
        return edit_password_file(&o, mk_str_of(NULL, 0));
    code = read_and_hash_password(&o, hash);
    return code == FINE ? edit_password_file(&o, mk_str_from_c(hash)) : code;
}

const struct mk_command auth_passwd = {
    .name = "passwd",
    .args = "FILE USER",
    .help = "Add, change or delete a user in a password file (plugin auth).",
    .run = run_passwd,
};
