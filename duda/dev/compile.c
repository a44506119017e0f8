/* SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"

#include "messages.h"
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <monkey/text.h>
#include <monkey/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGES_MAX = 4 * 1024 * 1024,
    FILES_MAX = 1024 * 1024,
    WEEK_S = 7 * 24 * 3600,
    HEX = 32,
    NOT_STARTED = 127
};

/* Two fixed keys suffice for a 128-bit hash, because attackers cannot write to the cache. */
static const struct mk_hash_key keys[2] = {{1, 2}, {3, 4}};

/* ---- Unsupported sources ---- */

static bool report_cpp_source(const struct dev_source *source, struct mk_buf *messages)
{
    mk_buf_addf(messages,
                "%s:1: error: a service must be written in C; compile C++ code separately, with extern \"C\" "
                "functions, and link its object: `cflags: FILE.o -lstdc++`\n",
                source->path);
    return false;
}

static bool check_service_source(const struct dev_source *source, struct mk_buf *messages)
{
    bool is_name = strspn(source->name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(source->name);
    if (dev_source_is_cpp(mk_str_from_c(source->path)))
        return report_cpp_source(source, messages);
    if (source->is_service && !is_name)
        mk_buf_addf(
            messages,
            "%s:%u: error: DUDA_SERVICE(%s, ...): the name of a service consists of lower-case letters "
            "and digits\n",
            source->path, source->line, source->name);
    return !source->is_service || is_name;
}

/* ---- The command line ---- */

void dev_compile_add_compiler(struct dev_argv *w)
{
    mk_str cc = mk_str_trim(mk_str_from_c(getenv("CC")));
    dev_argv_add_split(w, cc.len ? cc : MK_STR("cc"));
}

static const char *const common[] = {"-std=gnu17",
                                     "-g",
                                     "-fPIC",
                                     "-shared",
                                     "-Wall",
                                     "-Wextra",
                                     "-Werror=implicit-function-declaration",
                                     "-Werror=int-conversion",
                                     "-Werror=incompatible-pointer-types",
                                     "-Wformat",
                                     "-Werror=format-security",
                                     "-Wframe-larger-than=32768",
                                     "-fstack-clash-protection",
                                     "-fno-lto",
                                     "-fasynchronous-unwind-tables",
                                     "-fno-omit-frame-pointer"};

/* Returns whether the package belongs to Duda. Duda's packages are linked without pkg-config, because they
 * need not be installed. */
static bool is_duda_package(mk_str package)
{
    return mk_str_eq(package, MK_STR("duda")) || mk_str_starts(package, MK_STR("duda-"));
}

static bool add_pkg_config_flags(struct dev_argv *w, mk_str packages, bool libs, struct mk_buf *messages)
{
    struct dev_argv pkg_config;
    struct mk_buf flags = mk_buf_growing(64 * 1024);
    mk_str word;
    size_t n = 0;
    dev_argv_init(&pkg_config);
    dev_argv_add(&pkg_config, MK_STR("pkg-config"));
    dev_argv_add(&pkg_config, MK_STR("--cflags"));
    if (libs)
        dev_argv_add(&pkg_config, MK_STR("--libs"));
    dev_argv_add(&pkg_config, MK_STR("--"));
    for (; (word = dev_argv_next_word(&packages)).len; n += !is_duda_package(word))
        if (!is_duda_package(word))
            dev_argv_add(&pkg_config, word);
    bool ok = n == 0 || dev_process_run(&pkg_config, &flags) == 0;
    if (ok)
        dev_argv_add_split(w, mk_buf_str(&flags));
    else
        mk_buf_add(messages, mk_buf_str(&flags));
    dev_argv_free(&pkg_config);
    mk_buf_free(&flags);
    return ok;
}

static void add_build_flags(struct dev_argv *w, const struct dev_compile *how)
{
    dev_argv_add(w, how->kind == DEV_COMPILE_DEPLOY ? MK_STR("-O2") : MK_STR("-O0"));
    if (how->color)
        dev_argv_add(w, MK_STR("-fdiagnostics-color=always"));
    for (unsigned i = 0; i < how->paths->n_headers; i++)
        dev_argv_addf(w, "-I%s", how->paths->headers[i]);
}

/* Links the shared objects of Duda, of its packages and of the library `monkey-readers`; functions of the
 * program need no linking. The linker keeps only the objects that the service uses. */
static void add_duda_objects(struct dev_argv *w, const struct dev_compile *how)
{
    const char *folder = how->paths->objects;
    char pattern[PATH_MAX];
    glob_t found;
    if (how->kind == DEV_COMPILE_TEST || !*folder ||
        !dev_paths_format(pattern, "%s/monkey-duda*.so", folder) || glob(pattern, 0, NULL, &found) != 0)
        return;
    /* The linker only warns about undefined symbols, because the program may define them at run time:
     * dev_messages_check_undefined() checks them. */
    dev_argv_addf(w, "-Wl,-rpath,%s,--as-needed,-z,defs,--warn-unresolved-symbols", folder);
    dev_argv_addf(w, "-L%s", folder);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = found.gl_pathv[i] + strlen(folder) + 1;
        if (strcmp(name, "monkey-duda-dev.so") != 0)
            dev_argv_addf(w, "-l:%s", name);
    }
    dev_argv_add(w, MK_STR("-l:monkey-readers.so"));
    globfree(&found);
}

/* Adds all flags except the names of output files. */
static void add_compiler_flags(struct dev_argv *w, const struct dev_compile *how,
                               const struct dev_source *source)
{
    dev_compile_add_compiler(w);
    for (size_t i = 0; i < MK_LEN(common); i++)
        dev_argv_add(w, mk_str_from_c(common[i]));
    add_build_flags(w, how);
    dev_argv_add_split(w, mk_buf_str(&source->flags));
}

static bool build_link_command(struct dev_argv *w, const struct dev_compile *how,
                               const struct dev_source *source, const char *input, struct mk_buf *messages)
{
    add_compiler_flags(w, how, source);
    dev_argv_add(w, mk_str_from_c(input));
    bool ok = add_pkg_config_flags(w, mk_buf_str(&source->packages), true, messages);
    add_duda_objects(w, how);
    return ok;
}

/* ---- The cache ---- */

static void format_cache_key(char hex[HEX + 1], const struct dev_argv *command,
                             const struct dev_source *source)
{
    struct mk_buf all = mk_buf_growing(2 * DEV_SOURCE_MAX);
    mk_buf_addf(&all, "%s %d %s %s", MK_VERSION, MK_ABI, source->path, source->name);
    mk_buf_add_char(&all, '\0');
    mk_buf_add(&all, mk_buf_str(&command->text));
    mk_buf_add(&all, mk_buf_str(&source->text));
    snprintf(hex, HEX + 1, "%016llx%016llx", (unsigned long long)mk_hash(&keys[0], mk_buf_str(&all)),
             (unsigned long long)mk_hash(&keys[1], mk_buf_str(&all)));
    mk_buf_free(&all);
}

static void append_file_hash(struct mk_buf *sums, bool is_there, mk_str text)
{
    mk_buf_addf(sums, "%d %llx ", is_there, (unsigned long long)mk_hash(&keys[0], text));
}

/* Hashes the contents of the files. For `source`, if given, it uses the text that was read before the
 * compiler ran, because the file may have been saved again since then. */
static uint64_t hash_files(mk_str files, const struct dev_source *source)
{
    struct mk_buf sums = mk_buf_growing(FILES_MAX);
    while (files.len) {
        mk_str line = mk_str_cut(&files, '\n');
        if (source && mk_str_eq(line, mk_str_from_c(source->path))) {
            append_file_hash(&sums, true, mk_buf_str(&source->text));
            continue;
        }
        char path[PATH_MAX];
        struct mk_buf text = mk_buf_growing(DEV_SOURCE_MAX);
        bool ok = dev_paths_format(path, "%.*s", MK_STR_ARG(line)) && dev_source_read_file(path, &text);
        append_file_hash(&sums, ok, mk_buf_str(&text));
        mk_buf_free(&text);
    }
    uint64_t stamp = mk_hash(&keys[0], mk_buf_str(&sums));
    mk_buf_free(&sums);
    return stamp;
}

uint64_t dev_compile_hash_files(mk_str files)
{
    return hash_files(files, NULL);
}

/* ---- Files saved during a compilation ---- */

/* The input files of the compiler that are known before it runs. */
struct file_snapshot {
    struct mk_buf files; /* one per line */
    uint64_t mark;
    struct timespec begin;
};

/* Returns a hash that changes when one of the files is written or replaced, even with the same content. */
static uint64_t hash_file_stats(mk_str files)
{
    struct mk_buf marks = mk_buf_growing(FILES_MAX);
    while (files.len) {
        struct stat st;
        char path[PATH_MAX];
        mk_str line = mk_str_cut(&files, '\n');
        if (!dev_paths_format(path, "%.*s", MK_STR_ARG(line)) || stat(path, &st) < 0)
            st = (struct stat){0};
        mk_buf_addf(&marks, "%llx %llx %lld.%ld ", (unsigned long long)st.st_dev,
                    (unsigned long long)st.st_ino, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    }
    uint64_t mark = mk_hash(&keys[0], mk_buf_str(&marks));
    mk_buf_free(&marks);
    return mark;
}

static struct file_snapshot take_file_snapshot(mk_str known, mk_str sources)
{
    struct file_snapshot m = {.files = mk_buf_growing(2 * FILES_MAX)};
    mk_buf_add(&m.files, known);
    mk_buf_add(&m.files, sources);
    m.mark = hash_file_stats(mk_buf_str(&m.files));
    /* File systems use this clock for modification times. */
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &m.begin);
    return m;
}

static bool list_contains_line(mk_str lines, mk_str line)
{
    while (lines.len)
        if (mk_str_eq(mk_str_cut(&lines, '\n'), line))
            return true;
    return false;
}

static bool is_newer_than(mk_str file, const struct timespec *t)
{
    char path[PATH_MAX];
    struct stat st;
    if (!dev_paths_format(path, "%.*s", MK_STR_ARG(file)) || stat(path, &st) < 0)
        return true;
    return st.st_ctim.tv_sec > t->tv_sec ||
           (st.st_ctim.tv_sec == t->tv_sec && st.st_ctim.tv_nsec >= t->tv_nsec);
}

/* Returns whether one of the files was saved since the snapshot. For headers that were unknown before the
 * compilation, only the time counts. */
static bool files_changed_since(const struct file_snapshot *m, mk_str files)
{
    bool any = hash_file_stats(mk_buf_str(&m->files)) != m->mark;
    while (!any && files.len) {
        mk_str line = mk_str_cut(&files, '\n');
        any = !list_contains_line(mk_buf_str(&m->files), line) && is_newer_than(line, &m->begin);
    }
    return any;
}

/* Reads the list of an object's dependencies, which begins with a line with their hash. */
static bool read_cached_file_list(const char *path, struct dev_compile_result *out)
{
    struct mk_buf text = mk_buf_growing(FILES_MAX);
    unsigned long long stamp = 0;
    bool ok = dev_source_read_file(path, &text);
    mk_str rest = mk_buf_str(&text), first = mk_str_cut(&rest, '\n');
    char number[32];
    snprintf(number, sizeof number, "%.*s", MK_STR_ARG(first));
    ok = ok && rest.p && sscanf(number, "%llx", &stamp) == 1;
    if (ok) {
        mk_buf_clear(&out->files);
        mk_buf_add(&out->files, rest);
        out->stamp = stamp;
    }
    mk_buf_free(&text);
    return ok;
}

static bool is_cached_object(const char *list, struct dev_compile_result *out)
{
    if (access(out->object, R_OK) != 0 || !read_cached_file_list(list, out) ||
        dev_compile_hash_files(mk_buf_str(&out->files)) != out->stamp)
        return false;
    (void)utimensat(AT_FDCWD, out->object, NULL, 0); /* protects the object from dev_compile_clean_cache() */
    (void)utimensat(AT_FDCWD, list, NULL, 0);
    return true;
}

static void write_file_atomic(const char *path, mk_str text)
{
    char next[PATH_MAX];
    if (!dev_paths_format(next, "%s.%d", path, (int)getpid()))
        return;
    FILE *f = fopen(next, "we");
    if (!f)
        return;
    bool ok = fwrite(text.p, 1, text.len, f) == text.len;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(next, path) < 0)
        unlink(next);
}

static bool is_cache_file_name(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    return n == HEX && name[n] == '.';
}

void dev_compile_clean_cache(const struct dev_paths *paths)
{
    DIR *folder = opendir(paths->cache);
    struct dirent *entry;
    struct stat st;
    while (folder && (entry = readdir(folder)))
        if (is_cache_file_name(entry->d_name) &&
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime < time(NULL) - WEEK_S)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

/* ---- Dependencies ---- */

void dev_compile_parse_depfile(mk_str rule, const char *cache, struct mk_buf *files)
{
    size_t at = mk_str_find(rule, ':'), begin = files->len;
    for (size_t i = at == MK_STR_NONE ? rule.len : at + 1; i <= rule.len; i++) {
        char c = i < rule.len ? rule.p[i] : ' ';
        bool quotes = c == '\\' && i + 1 < rule.len;
        if (quotes && rule.p[i + 1] != '\n')
            mk_buf_add_char(files, rule.p[++i]);
        else if (c == '$' && i + 1 < rule.len && rule.p[i + 1] == '$')
            mk_buf_add_char(files, rule.p[++i]);
        else if (c != ' ' && c != '\n' && c != '\t' && !quotes)
            mk_buf_add_char(files, c);
        else if (files->len > begin) {
            mk_str name = mk_str_skip(mk_buf_str(files), begin);
            if (mk_str_starts(name, mk_str_from_c(cache)))
                files->len = begin; /* drops a generated file, which only includes the source */
            else
                mk_buf_add_char(files, '\n');
            begin = files->len;
        }
    }
}

static void read_depfile(const char *path, const struct dev_compile *how, struct mk_buf *files)
{
    struct mk_buf rule = mk_buf_growing(FILES_MAX);
    if (dev_source_read_file(path, &rule))
        dev_compile_parse_depfile(mk_buf_str(&rule), how->paths->cache, files);
    (void)unlink(path);
    mk_buf_free(&rule);
}

static void record_dependencies(const char *rule, const struct dev_compile *how,
                                const struct dev_source *source, mk_str others,
                                struct dev_compile_result *out)
{
    mk_buf_clear(&out->files);
    read_depfile(rule, how, &out->files);
    if (out->files.len == 0)
        mk_buf_addf(&out->files, "%s\n", source->path);
    mk_buf_add(&out->files, others);
    out->stamp = hash_files(mk_buf_str(&out->files), source);
}

/* ---- Additional sources of the service ---- */

/* Lists the paths of the sources, one per line. Reports an error and returns false if one of them does not
 * exist. */
static bool find_extra_sources(const struct dev_source *source, struct mk_buf *others,
                               struct mk_buf *messages)
{
    char path[PATH_MAX], real[PATH_MAX];
    const int folder = (int)(strrchr(source->path, '/') - source->path) + 1;
    mk_str rest = mk_buf_str(&source->sources), word;
    bool ok = true;
    while ((word = dev_argv_next_word(&rest)).len) {
        word = mk_str_ends(word, MK_STR(",")) ? mk_str_first(word, word.len - 1) : word;
        if (dev_source_is_cpp(word))
            ok = report_cpp_source(source, messages);
        if (!mk_str_ends(word, MK_STR(".c")))
            continue;
        bool is_found = dev_paths_format(path, "%.*s%.*s", word.p[0] == '/' ? 0 : folder, source->path,
                                         MK_STR_ARG(word)) &&
                        realpath(path, real);
        mk_buf_addf(others, "%s\n", is_found ? real : path); /* a missing file is also watched */
        if (!is_found)
            mk_buf_addf(messages, "%s:1: error: `sources: %.*s`: there is no such file\n", source->path,
                        MK_STR_ARG(word));
        ok = ok && is_found;
    }
    return ok;
}

/* Compiles each source to an object, adds the objects to `command`, which links them, and adds the
 * dependencies to `files`. */
static bool compile_extra_sources(const struct dev_compile *how, const struct dev_source *source,
                                  mk_str others, const char *next, struct mk_buf *files,
                                  struct dev_argv *command, struct mk_buf *messages)
{
    char rule[PATH_MAX];
    bool ok = true;
    unsigned n = 0;
    for (; others.len; n++) {
        struct dev_argv words;
        mk_str path = mk_str_cut(&others, '\n');
        dev_argv_init(&words);
        add_compiler_flags(&words, how, source);
        ok = dev_paths_format(rule, "%s.%u.rule", next, n) &&
             add_pkg_config_flags(&words, mk_buf_str(&source->packages), false, messages) && ok;
        dev_argv_add(&words, MK_STR("-c"));
        dev_argv_add(&words, path);
        dev_argv_add(&words, MK_STR("-MMD"));
        dev_argv_add(&words, MK_STR("-MF"));
        dev_argv_add(&words, mk_str_from_c(rule));
        dev_argv_add(&words, MK_STR("-o"));
        dev_argv_addf(&words, "%s.%u.o", next, n);
        ok = dev_process_run(&words, messages) == 0 && ok;
        mk_buf_addf(files, "%.*s\n", MK_STR_ARG(path));
        read_depfile(rule, how, files);
        dev_argv_free(&words);
    }
    for (unsigned i = 0; ok && i < n; i++)
        dev_argv_addf(command, "%s.%u.o", next, i);
    if (!ok) /* compiles the main source without linking, to show its errors as well */
        dev_argv_add(command, MK_STR("-fsyntax-only"));
    return ok;
}

static void remove_temporary_objects(const char *next, mk_str others)
{
    char path[PATH_MAX];
    for (unsigned i = 0; others.len; i++) {
        (void)mk_str_cut(&others, '\n');
        if (dev_paths_format(path, "%s.%u.o", next, i))
            (void)unlink(path);
    }
}

static bool is_program_symbol(const char *symbol)
{
    return dlsym(RTLD_DEFAULT, symbol) != NULL;
}

/* ---- Entry points ---- */

static const char around[] = "#include <duda.h>\n#include \"%s\"\n"
                             "DUDA_SERVICE(%s, DUDA_ANY(\"/\", handle, \"The handler of this file.\"),\n"
                             "             DUDA_ANY(\"/*rest\", handle, \"The handler of this file.\"));\n";

/* Chooses the input of the compiler: the source itself, or a generated file that makes a service of a single
 * handler. */
static bool choose_compiler_input(const struct dev_compile *how, const struct dev_source *source,
                                  char input[PATH_MAX], struct mk_buf *messages)
{
    if (source->is_service || how->kind == DEV_COMPILE_TEST)
        return dev_paths_format(input, "%s", source->path);
    struct mk_buf text = mk_buf_growing(PATH_MAX + 1024);
    mk_buf_addf(&text, around, source->path, source->name);
    char hex[HEX + 1];
    snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)mk_hash(&keys[0], mk_buf_str(&text)),
             (unsigned long long)mk_hash(&keys[1], mk_buf_str(&text)));
    bool ok = dev_paths_format(input, "%s/%s.c", how->paths->cache, hex);
    if (ok)
        write_file_atomic(input, mk_buf_str(&text));
    mk_buf_free(&text);
    if (!memmem(source->text.p ? source->text.p : "", source->text.len, "handle", 6)) {
        mk_buf_addf(messages,
                    "%s:1:1: error: expected DUDA_SERVICE(...) or a function `int handle(struct "
                    "duda_ctx *d)`\n",
                    source->path);
        return false;
    }
    return ok;
}

static void run_compiler(const struct dev_compile *how, const struct dev_source *source, mk_str others,
                         struct dev_argv *command, const char *list, struct dev_compile_result *out)
{
    char next[PATH_MAX], rule[PATH_MAX];
    struct mk_buf files = mk_buf_growing(FILES_MAX);
    if (!dev_paths_format(next, "%s.%d", out->object, (int)getpid()) ||
        !dev_paths_format(rule, "%s.rule", next)) {
        mk_buf_addf(&out->messages, "%s: the path is too long\n", out->object);
        return;
    }
    dev_argv_add(command, MK_STR("-MMD"));
    dev_argv_add(command, MK_STR("-MF"));
    dev_argv_add(command, mk_str_from_c(rule));
    dev_argv_add(command, MK_STR("-o"));
    dev_argv_add(command, mk_str_from_c(next));
    if (list)
        (void)unlink(list);
    struct file_snapshot file_snapshot = take_file_snapshot(how->known, mk_buf_str(&out->files));
    bool ok = compile_extra_sources(how, source, others, next, &files, command, &out->messages);
    int code = dev_process_run(command, &out->messages);
    remove_temporary_objects(next, others);
    if (code == NOT_STARTED)
        mk_buf_add(&out->messages, MK_STR("No C compiler was found: install gcc or clang, or set CC.\n"));
    ok = dev_messages_check_undefined(&out->messages, is_program_symbol) && ok;
    if (code)
        dev_messages_explain_conflicts(&out->messages);
    out->ok = code == 0 && ok;
    record_dependencies(rule, how, source, mk_buf_str(&files), out);
    mk_buf_free(&files);
    out->is_unsure = files_changed_since(&file_snapshot, mk_buf_str(&out->files));
    mk_buf_free(&file_snapshot.files);
    if (out->ok && rename(next, out->object) < 0) {
        mk_buf_addf(&out->messages, "%s: %s\n", out->object, strerror(errno));
        out->ok = false;
    }
    if (!out->ok) {
        (void)unlink(next);
    } else if (list && !out->is_unsure && dev_compile_hash_files(mk_buf_str(&out->files)) == out->stamp) {
        struct mk_buf text = mk_buf_growing(FILES_MAX);
        mk_buf_addf(&text, "%016llx\n", (unsigned long long)out->stamp);
        mk_buf_add(&text, mk_buf_str(&out->files));
        write_file_atomic(list, mk_buf_str(&text));
        mk_buf_free(&text);
    }
}

void dev_compile(const struct dev_compile *how, const struct dev_source *source,
                 struct dev_compile_result *out)
{
    char input[PATH_MAX], list[PATH_MAX], hex[HEX + 1];
    struct dev_argv command;
    struct mk_buf all = mk_buf_growing(FILES_MAX);
    *out = (struct dev_compile_result){.messages = mk_buf_growing(MESSAGES_MAX),
                                       .files = mk_buf_growing(FILES_MAX)};
    dev_argv_init(&command);
    mk_buf_addf(&out->files, "%s\n", source->path);
    bool ok = check_service_source(source, &out->messages);
    ok = find_extra_sources(source, &all, &out->messages) && ok;
    mk_str others = mk_buf_str(&all);
    mk_buf_add(&out->files, others);
    ok = ok && choose_compiler_input(how, source, input, &out->messages) &&
         build_link_command(&command, how, source, input, &out->messages);
    out->stamp = hash_files(mk_buf_str(&out->files), source);
    format_cache_key(hex, &command, source);
    if (ok && how->output) {
        ok = dev_paths_format(out->object, "%s", how->output);
        if (ok)
            run_compiler(how, source, others, &command, NULL, out);
    } else if (ok && dev_paths_format(out->object, "%s/%s.so", how->paths->cache, hex) &&
               dev_paths_format(list, "%s/%s.list", how->paths->cache, hex)) {
        out->ok = out->was_cached = is_cached_object(list, out);
        if (!out->ok)
            run_compiler(how, source, others, &command, list, out);
    }
    dev_argv_free(&command);
    mk_buf_free(&all);
}

void dev_compile_result_free(struct dev_compile_result *c)
{
    mk_buf_free(&c->messages);
    mk_buf_free(&c->files);
}
