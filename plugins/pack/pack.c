/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey pack`: writes the files of a folder as a C source, for mk_server_add_files(). */
#include "pack_folder.h"
#include "pack_gzip.h"

#include <errno.h>
#include <getopt.h>
#include <monkey/mem.h>
#include <monkey/plugin.h>
#include <monkey/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PACK_OK = 0, PACK_FAILED = 1, PACK_USAGE = 2, BYTES_PER_LINE = 28, FILE_SIZE_MAX = 1 << 30 };

struct pack_options {
    const char *folder, *output, *name;
    bool no_gzip, help;
};

static const char usage[] = "usage: monkey pack [-o FILE] [-n NAME] [--no-gzip] FOLDER\n";

static const char help[] =
    "\n"
    "Writes the files of a folder as C source: an array of struct mk_memory_file for mk_server_add_files().\n"
    "The same files give the same output.\n"
    "\n"
    "  -o, --output FILE    write to this file instead of standard output\n"
    "  -n, --name NAME      name of the array (default: files); NAME_n is the number of its entries\n"
    "      --no-gzip        do not compress\n"
    "  -h, --help           print this help\n"
    "\n"
    "A file NAME.gz or NAME.br beside NAME becomes its compressed variant. Without NAME.gz, the command "
    "compresses\n"
    "NAME with gzip if that saves a tenth. It skips names that begin with a dot, and symbolic links to "
    "folders.\n";

static int print_pack_error(int code, const char *path, const char *message)
{
    fprintf(stderr, "monkey pack: %s%s%s\n", path ? path : "", path ? ": " : "", message);
    return code;
}

/* ---- Command line ---- */

static bool is_identifier(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    return strchr(letters, *s) && *s &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == strlen(s);
}

static bool parse_pack_option(struct pack_options *o, int letter)
{
    switch (letter) {
    case 'o':
        o->output = optarg;
        return true;
    case 'n':
        o->name = optarg;
        return true;
    case 'z':
        o->no_gzip = true;
        return true;
    case 'h':
        o->help = true;
        return true;
    default:
        return false;
    }
}

static int parse_pack_options(int argc, char **argv, struct pack_options *o)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"name", required_argument, NULL, 'n'},
                                            {"no-gzip", no_argument, NULL, 'z'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int letter;
    optind = 0; /* resets getopt, which the program has already used */
    while ((letter = getopt_long(argc, argv, "o:n:h", options, NULL)) != -1)
        if (!parse_pack_option(o, letter)) {
            fputs(usage, stderr);
            return PACK_USAGE;
        }
    if (o->help)
        return PACK_OK;
    if (optind + 1 != argc) {
        fputs(usage, stderr);
        return PACK_USAGE;
    }
    o->folder = argv[optind];
    if (!is_identifier(o->name))
        return print_pack_error(PACK_USAGE, o->name, "not a C identifier: expected letters, digits and `_`");
    return PACK_OK;
}

/* ---- Files ---- */

/* Appends the whole file. Returns false on failure, with errno set. */
static bool read_file(const char *path, struct mk_buf *out)
{
    FILE *in = fopen(path, "rbe");
    if (!in)
        return false;
    size_t got;
    char chunk[16384];
    while ((got = fread(chunk, 1, sizeof chunk, in)) > 0)
        mk_buf_add(out, mk_str_of(chunk, got));
    int e = ferror(in) ? errno : out->failed ? ENOMEM : 0;
    fclose(in);
    errno = e;
    return e == 0;
}

/* The characters that mk_server_add_files() rejects, because they are syntax in a route or a header. */
static const char *find_invalid_character(const char *url_path)
{
    for (const unsigned char *p = (const unsigned char *)url_path; *p; p++)
        if (*p <= ' ' || *p == 0x7f || strchr(":*?#<>\"\\", *p))
            return (const char *)p;
    return NULL;
}

/* Returns whether the file is the compressed variant of another one. */
static bool is_variant(const struct pack_folder *f, const struct pack_file *file)
{
    size_t len = strlen(file->url_path);
    if (len < 4 ||
        (strcmp(file->url_path + len - 3, ".gz") != 0 && strcmp(file->url_path + len - 3, ".br") != 0))
        return false;
    char *base = pack_copy(file->url_path, len - 3);
    bool found = base && pack_folder_find(f, base, "");
    mk_mem_free(base);
    return found;
}

/* ---- Output ---- */

static void write_bytes(FILE *out, const char *kind, size_t index, mk_str bytes)
{
    fprintf(out, "static const unsigned char %s_%zu[] = {", kind, index);
    for (size_t i = 0; i < bytes.len; i++)
        fprintf(out, "%s%u,", i % BYTES_PER_LINE == 0 ? "\n" : "", (unsigned char)bytes.p[i]);
    fputs(bytes.len ? "\n};\n" : "0};\n", out);
}

struct pack_entry {
    size_t size, gzip_size, br_size; /* 0: no variant */
};

struct pack_run {
    const struct pack_options *options;
    struct pack_folder folder;
    struct pack_entry *entries; /* one for each file of the folder */
    FILE *out;
};

/* Writes the variant as an array; adds its length to *size. */
static int write_file_bytes(struct pack_run *r, const struct pack_file *file, const char *kind, size_t index,
                            size_t *size)
{
    struct mk_buf content = mk_buf_growing(FILE_SIZE_MAX);
    int code = PACK_OK;
    if (!read_file(file->disk_path, &content))
        code = print_pack_error(PACK_FAILED, file->disk_path,
                                errno == ENOMEM ? "larger than 1 GB, or not enough memory" : strerror(errno));
    else {
        write_bytes(r->out, kind, index, mk_buf_str(&content));
        *size = content.len;
    }
    mk_buf_free(&content);
    return code;
}

/* Compresses the file unless the option forbids it. */
static int write_compressed(struct pack_run *r, const struct pack_file *file, size_t index, size_t *size)
{
    struct mk_buf content = mk_buf_growing(FILE_SIZE_MAX), gzip = mk_buf_growing(2u * FILE_SIZE_MAX);
    int code = PACK_OK;
    if (r->options->no_gzip)
        return code;
    if (!read_file(file->disk_path, &content))
        code = print_pack_error(PACK_FAILED, file->disk_path, strerror(errno));
    else if (pack_gzip(mk_buf_str(&content), &gzip)) {
        write_bytes(r->out, "gzip", index, mk_buf_str(&gzip));
        *size = gzip.len;
    } else if (gzip.failed)
        code = print_pack_error(PACK_FAILED, file->disk_path, strerror(ENOMEM));
    mk_buf_free(&content);
    mk_buf_free(&gzip);
    return code;
}

static int write_entry_bytes(struct pack_run *r, size_t index)
{
    const struct pack_file *file = &r->folder.files[index];
    struct pack_entry *entry = &r->entries[index];
    const struct pack_file *gz = pack_folder_find(&r->folder, file->url_path, ".gz");
    const struct pack_file *br = pack_folder_find(&r->folder, file->url_path, ".br");
    int code = write_file_bytes(r, file, "file", index, &entry->size);
    if (code == PACK_OK)
        code = gz ? write_file_bytes(r, gz, "gzip", index, &entry->gzip_size)
                  : write_compressed(r, file, index, &entry->gzip_size);
    return code == PACK_OK && br ? write_file_bytes(r, br, "br", index, &entry->br_size) : code;
}

static void write_entry(struct pack_run *r, size_t index)
{
    const struct pack_entry *e = &r->entries[index];
    fprintf(r->out, "    {.path = \"%s\", .content = {(const char *)file_%zu, %zu}",
            r->folder.files[index].url_path, index, e->size);
    if (e->gzip_size)
        fprintf(r->out, ", .gzip = {(const char *)gzip_%zu, %zu}", index, e->gzip_size);
    if (e->br_size)
        fprintf(r->out, ", .br = {(const char *)br_%zu, %zu}", index, e->br_size);
    fputs("},\n", r->out);
}

static int check_paths(const struct pack_run *r)
{
    for (size_t i = 0; i < r->folder.n; i++) {
        const char *c = find_invalid_character(r->folder.files[i].url_path);
        if (c) {
            char message[80];
            snprintf(message, sizeof message,
                     *c == ' ' ? "a path of a URL cannot contain a space"
                               : "a path of a URL cannot contain `%c`",
                     *c);
            return print_pack_error(PACK_FAILED, r->folder.files[i].disk_path, message);
        }
    }
    return r->folder.n ? PACK_OK : print_pack_error(PACK_FAILED, r->options->folder, "no files to pack");
}

static int write_source(struct pack_run *r)
{
    const char *name = r->options->name;
    int code = PACK_OK;
    fprintf(r->out,
            "/* Generated by `monkey pack`; do not edit. To use it:\n"
            "     extern const struct mk_memory_file %s[];\n"
            "     extern const size_t %s_n;\n"
            "     mk_server_add_files(server, %s, %s_n, sizeof %s[0]); */\n"
            "#include <monkey/server.h>\n\n"
            "extern const struct mk_memory_file %s[];\n"
            "extern const size_t %s_n;\n\n",
            name, name, name, name, name, name, name);
    for (size_t i = 0; i < r->folder.n && code == PACK_OK; i++)
        if (!is_variant(&r->folder, &r->folder.files[i]))
            code = write_entry_bytes(r, i);
    fprintf(r->out, "\nconst struct mk_memory_file %s[] = {\n", name);
    for (size_t i = 0; i < r->folder.n; i++)
        if (!is_variant(&r->folder, &r->folder.files[i]))
            write_entry(r, i);
    fprintf(r->out, "};\n\nconst size_t %s_n = sizeof %s / sizeof %s[0];\n", name, name, name);
    return code;
}

static int write_and_close(struct pack_run *r, const char *path)
{
    int code = write_source(r);
    bool failed = ferror(r->out) != 0;
    failed |= fclose(r->out) != 0;
    return code == PACK_OK && failed ? print_pack_error(PACK_FAILED, path, strerror(errno)) : code;
}

static int write_to(struct pack_run *r, const char *path)
{
    r->out = fopen(path, "we");
    return r->out ? write_and_close(r, path) : print_pack_error(PACK_FAILED, path, strerror(errno));
}

/* Writes to a temporary file and renames it, so that a build never compiles a partial file. */
static int replace_file(struct pack_run *r, const char *path)
{
    size_t len = strlen(path);
    char *temporary = mk_mem_alloc(len + sizeof ".tmp");
    if (!temporary)
        return print_pack_error(PACK_FAILED, path, strerror(ENOMEM));
    memcpy(temporary, path, len);
    memcpy(temporary + len, ".tmp", sizeof ".tmp");
    int code = write_to(r, temporary);
    if (code == PACK_OK && rename(temporary, path) != 0)
        code = print_pack_error(PACK_FAILED, path, strerror(errno));
    if (code != PACK_OK)
        unlink(temporary);
    mk_mem_free(temporary);
    return code;
}

static int write_output(struct pack_run *r)
{
    const char *path = r->options->output;
    struct stat st;
    if (!path) {
        r->out = stdout;
        return write_and_close(r, "standard output");
    }
    bool is_device = stat(path, &st) == 0 && !S_ISREG(st.st_mode); /* or a pipe; rename() would replace it */
    return is_device ? write_to(r, path) : replace_file(r, path);
}

static int pack_folder(const struct pack_options *o)
{
    struct pack_run r = {.options = o};
    char *error_path = NULL;
    int code = PACK_FAILED;
    if (!pack_folder_list(&r.folder, o->folder, &error_path))
        print_pack_error(PACK_FAILED, error_path ? error_path : o->folder, strerror(errno));
    else
        code = check_paths(&r);
    if (code == PACK_OK) {
        r.entries = mk_mem_zalloc(r.folder.n, sizeof *r.entries);
        code = r.entries ? write_output(&r) : print_pack_error(PACK_FAILED, o->folder, strerror(ENOMEM));
    }
    mk_mem_free(r.entries);
    mk_mem_free(error_path);
    pack_folder_free(&r.folder);
    return code;
}

static int run_pack(int argc, char **argv)
{
    struct pack_options o = {.name = "files"};
    int code = parse_pack_options(argc, argv, &o);
    if (code != PACK_OK)
        return code;
    if (!o.help)
        return pack_folder(&o);
    printf("%s%s", usage, help);
    return PACK_OK;
}

static const struct mk_command pack = {
    .name = "pack",
    .args = "[-o FILE] [-n NAME] FOLDER",
    .help = "Write the files of a folder as C source for libmonkey (plugin pack).",
    .run = run_pack,
};

static const struct mk_command *const commands[] = {&pack, NULL};

MK_PLUGIN(pack) = {
    MK_PLUGIN_HEAD,
    .name = "pack",
    .version = MONKEY_VERSION,
    .help = "Writes the files of a folder as C source: `monkey pack`.",
    .commands = commands,
};
