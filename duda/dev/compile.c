/* SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"

#include "cache.h"
#include "inputs.h"
#include "messages.h"
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <monkey/mem.h>
#include <monkey/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MESSAGES_MAX = 4 * 1024 * 1024, FILES_MAX = 1024 * 1024, NOT_STARTED = 127 };

/* ---- Errors in sources ---- */

static bool check_service_source(const struct dev_source *source, struct mk_buf *messages)
{
    bool is_name = strspn(source->name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(source->name);
    mk_buf_add(messages, mk_buf_str(&source->errors));
    if (source->is_service && !is_name)
        mk_buf_addf(
            messages,
            "%s:%u: error: DUDA_SERVICE(%s, ...): the name of a service consists of lower-case letters "
            "and digits\n",
            source->path, source->line, source->name);
    return source->errors.len == 0 && (!source->is_service || is_name);
}

/* ---- Command lines ---- */

void dev_compile_add_compiler(struct dev_argv *w, bool is_cpp)
{
    mk_str compiler = mk_str_trim(mk_str_from_c(getenv(is_cpp ? "CXX" : "CC")));
    dev_argv_add_split(w, compiler.len ? compiler : is_cpp ? MK_STR("c++") : MK_STR("cc"));
}

static const char *const common[] = {"-g",
                                     "-fPIC",
                                     "-Wall",
                                     "-Wextra",
                                     "-Wno-unused-parameter", /* handlers need not use their context */
                                     "-Werror=format",
                                     "-Werror=format-security",
                                     "-Wframe-larger-than=32768",
                                     "-fstack-clash-protection",
                                     "-fno-lto",
                                     "-fasynchronous-unwind-tables",
                                     "-fno-omit-frame-pointer"};

/* In C++, the language itself has these rules. */
static const char *const only_c[] = {"-std=gnu17", "-Werror=implicit-function-declaration",
                                     "-Werror=int-conversion", "-Werror=incompatible-pointer-types"};

/* The macros of duda.h use designated initializers, which need C++20. */
static const char *const only_cpp[] = {"-std=gnu++20"};

static void add_flags(struct dev_argv *w, const char *const *flags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dev_argv_add(w, mk_str_from_c(flags[i]));
}

/* Returns whether the package belongs to Duda. Duda's packages are linked without pkg-config, because they
 * need not be installed. */
static bool is_duda_package(mk_str package)
{
    return mk_str_eq(package, MK_STR("duda")) || mk_str_starts(package, MK_STR("duda-"));
}

static bool add_pkg_config_flags(struct dev_argv *w, mk_str packages, const char *option,
                                 struct mk_buf *messages)
{
    struct dev_argv pkg_config;
    struct mk_buf flags = mk_buf_growing(64 * 1024);
    mk_str word;
    size_t n = 0;
    dev_argv_init(&pkg_config);
    dev_argv_add(&pkg_config, MK_STR("pkg-config"));
    dev_argv_add(&pkg_config, mk_str_from_c(option));
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

bool dev_compile_build_command(const struct dev_compile *how, const struct dev_source *source, mk_str file,
                               struct dev_argv *w, struct mk_buf *messages)
{
    bool is_cpp = dev_source_is_cpp(file);
    dev_compile_add_compiler(w, is_cpp);
    if (is_cpp)
        add_flags(w, only_cpp, MK_LEN(only_cpp));
    else
        add_flags(w, only_c, MK_LEN(only_c));
    add_flags(w, common, MK_LEN(common));
    dev_argv_add(w, how->kind == DEV_COMPILE_DEPLOY ? MK_STR("-O2") : MK_STR("-O0"));
    if (how->color)
        dev_argv_add(w, MK_STR("-fdiagnostics-color=always"));
    for (unsigned i = 0; i < how->paths->n_headers; i++)
        dev_argv_addf(w, "-I%s", how->paths->headers[i]);
    dev_argv_add_split(w, mk_buf_str(&source->flags));
    bool ok = add_pkg_config_flags(w, mk_buf_str(&source->packages), "--cflags", messages);
    dev_argv_add(w, MK_STR("-c"));
    dev_argv_add(w, file);
    return ok;
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

/* Adds everything that follows the objects in the command of the linker: libraries come after the objects
 * that use them. */
static bool add_link_options(struct dev_argv *w, const struct dev_compile *how,
                             const struct dev_source *source, struct mk_buf *messages)
{
    dev_argv_add_split(w, mk_buf_str(&source->flags));
    for (mk_str rest = mk_buf_str(&source->objects); rest.len;)
        dev_argv_add(w, mk_str_cut(&rest, '\n'));
    bool ok = add_pkg_config_flags(w, mk_buf_str(&source->packages), "--libs", messages);
    add_duda_objects(w, how);
    return ok;
}

/* ---- The main source ---- */

static const char around[] = "#include <duda.h>\n#include \"%s\"\n"
                             "DUDA_SERVICE(%s, DUDA_ANY(\"/\", handle, \"The handler of this file.\"),\n"
                             "             DUDA_ANY(\"/*rest\", handle, \"The handler of this file.\"));\n";

/* Chooses the input of the compiler: the source itself, or a generated file that makes a service of a single
 * handler. */
static bool choose_compiler_input(const struct dev_compile *how, const struct dev_source *source,
                                  char input[PATH_MAX], struct mk_buf *messages)
{
    struct dev_cache_entry generated;
    if (source->is_service || how->kind == DEV_COMPILE_TEST)
        return dev_paths_format(input, "%s", source->path);
    if (!memmem(source->text.p ? source->text.p : "", source->text.len, "handle", 6)) {
        mk_buf_addf(messages,
                    "%s:1:1: error: expected DUDA_SERVICE(...) or a function `int handle(struct "
                    "duda_ctx *d)`\n",
                    source->path);
        return false;
    }
    struct mk_buf text = mk_buf_growing(PATH_MAX + 1024);
    mk_buf_addf(&text, around, source->path, source->name);
    bool ok = dev_cache_locate(how->paths, mk_buf_str(&text),
                               dev_source_is_cpp(mk_str_from_c(source->path)) ? ".cpp" : ".c", &generated) &&
              dev_paths_format(input, "%s", generated.object);
    ok = ok && dev_cache_write_file(input, mk_buf_str(&text));
    mk_buf_free(&text);
    return ok;
}

/* ---- The objects of a service ---- */

/* The object of one source. */
struct object {
    char path[PATH_MAX], next[PATH_MAX], rule[PATH_MAX]; /* `next` is renamed when the object is complete */
    struct dev_cache_entry entry;
    struct dev_process_job job;
    bool is_cached;
    struct mk_buf files;
};

struct build {
    const struct dev_compile *how;
    const struct dev_source *source;
    struct dev_compile_result *out;
    struct object *objects; /* the main source first */
    size_t n;
    struct dev_argv link; /* the options after the objects */
    struct dev_cache_entry entry;
    struct dev_inputs_snapshot snapshot;
    bool is_cpp; /* one of the sources is C++, so the C++ compiler links */
};

/* Adds the files that the source names, before the compiler finds the others. */
static void add_given_files(const struct dev_source *source, struct mk_buf *files)
{
    dev_inputs_add_files(files, mk_str_from_c(source->path));
    dev_inputs_add_files(files, mk_buf_str(&source->others));
    dev_inputs_add_files(files, mk_buf_str(&source->objects));
}

static bool begin_object(struct build *b, mk_str path, mk_str text)
{
    struct object *o = &b->objects[b->n++];
    struct mk_buf key = mk_buf_growing(2 * DEV_SOURCE_MAX);
    o->job = (struct dev_process_job){.output = mk_buf_growing(MESSAGES_MAX)};
    o->files = mk_buf_growing(FILES_MAX);
    dev_argv_init(&o->job.args);
    b->is_cpp = b->is_cpp || dev_source_is_cpp(path);
    bool ok = dev_compile_build_command(b->how, b->source, path, &o->job.args, &b->out->messages);
    mk_buf_addf(&key, "object %s %d", MK_VERSION, MK_ABI);
    mk_buf_add_char(&key, '\0');
    mk_buf_add(&key, mk_buf_str(&o->job.args.text));
    mk_buf_add(&key, text);
    ok = ok && dev_paths_format(o->path, "%.*s", MK_STR_ARG(path)) &&
         dev_cache_locate(b->how->paths, mk_buf_str(&key), ".o", &o->entry) &&
         dev_paths_format(o->next, "%s.%d", o->entry.object, (int)getpid()) &&
         dev_paths_format(o->rule, "%s.rule", o->next);
    mk_buf_free(&key);
    return ok;
}

static size_t count_lines(mk_str text)
{
    size_t n = 0;
    for (; text.len; n++)
        (void)mk_str_cut(&text, '\n');
    return n;
}

/* Prepares the commands for all sources. Returns false after an error, which is in the messages. */
static bool begin_build(struct build *b)
{
    char input[PATH_MAX];
    mk_str others = mk_buf_str(&b->source->others);
    b->objects = mk_mem_zalloc(1 + count_lines(others), sizeof *b->objects);
    if (!b->objects || !choose_compiler_input(b->how, b->source, input, &b->out->messages) ||
        !begin_object(b, mk_str_from_c(input), mk_buf_str(&b->source->text)))
        return false;
    while (others.len) {
        mk_str path = mk_str_cut(&others, '\n');
        struct mk_buf text = mk_buf_growing(DEV_SOURCE_MAX);
        char name[PATH_MAX];
        bool ok = dev_paths_format(name, "%.*s", MK_STR_ARG(path)) && dev_source_read_file(name, &text);
        if (!ok)
            mk_buf_addf(&b->out->messages, "%.*s: %s\n", MK_STR_ARG(path), strerror(errno));
        ok = ok && begin_object(b, path, mk_buf_str(&text));
        mk_buf_free(&text);
        if (!ok)
            return false;
    }
    return add_link_options(&b->link, b->how, b->source, &b->out->messages);
}

static void free_build(struct build *b)
{
    for (size_t i = 0; i < b->n; i++) {
        (void)unlink(b->objects[i].next);
        dev_argv_free(&b->objects[i].job.args);
        mk_buf_free(&b->objects[i].job.output);
        mk_buf_free(&b->objects[i].files);
    }
    mk_mem_free(b->objects);
    dev_argv_free(&b->link);
    mk_buf_free(&b->snapshot.files);
}

static void add_output_options(struct dev_argv *w, const struct object *o)
{
    dev_argv_add(w, MK_STR("-MMD"));
    dev_argv_add(w, MK_STR("-MF"));
    dev_argv_add(w, mk_str_from_c(o->rule));
    dev_argv_add(w, MK_STR("-o"));
    dev_argv_add(w, mk_str_from_c(o->next));
}

/* Compiles the sources whose objects are not in the cache. Returns false if one of them failed. */
static bool compile_objects(struct build *b)
{
    struct dev_process_job *jobs = mk_mem_zalloc(b->n, sizeof *jobs);
    size_t n = 0;
    bool ok = jobs != NULL;
    for (size_t i = 0; jobs && i < b->n; i++) {
        struct object *o = &b->objects[i];
        uint64_t stamp;
        o->is_cached = dev_cache_lookup(&o->entry, &o->files, &stamp, &b->out->messages);
        if (o->is_cached)
            continue;
        (void)unlink(o->entry.list);
        add_output_options(&o->job.args, o);
        jobs[n++] = o->job;
    }
    dev_process_run_all(jobs, n);
    for (size_t i = 0, k = 0; jobs && i < b->n; i++) {
        struct object *o = &b->objects[i];
        if (o->is_cached)
            continue;
        o->job = jobs[k++];
        dev_inputs_read_depfile(o->rule, b->how->paths->cache, &o->files);
        mk_buf_add(&b->out->messages, mk_buf_str(&o->job.output));
        if (o->job.code == NOT_STARTED)
            mk_buf_add(&b->out->messages,
                       dev_source_is_cpp(mk_str_from_c(o->path))
                           ? MK_STR("No C++ compiler was found: install g++ or clang++, or set CXX.\n")
                           : MK_STR("No C compiler was found: install gcc or clang, or set CC.\n"));
        ok = ok && o->job.code == 0;
    }
    mk_mem_free(jobs);
    return ok;
}

static bool is_program_symbol(const char *symbol)
{
    return dlsym(RTLD_DEFAULT, symbol) != NULL;
}

/* Returns whether the file contains the name with an opening parenthesis, as a definition of a function does. */
static bool file_has_function(const char *path, mk_str name)
{
    struct mk_buf text = mk_buf_growing(DEV_SOURCE_MAX);
    char call[256];
    int len = snprintf(call, sizeof call, "%.*s(", MK_STR_ARG(name));
    bool found = len < (int)sizeof call && dev_source_read_file(path, &text) && text.len &&
                 memmem(text.p, text.len, call, (size_t)len);
    mk_buf_free(&text);
    return found;
}

/* Adds a hint if a file next to the only source seems to define the function: the folder should be compiled. */
static void add_folder_hint(const struct build *b, mk_str name)
{
    char pattern[PATH_MAX];
    const char *slash = strrchr(b->source->path, '/');
    int len = slash ? (int)(slash - b->source->path) : 0;
    glob_t found;
    if (b->source->others.len || !slash || !dev_paths_format(pattern, "%.*s/*.c", len, b->source->path) ||
        glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (strcmp(path, b->source->path) == 0 || mk_str_ends(mk_str_from_c(path), MK_STR("_test.c")) ||
            !file_has_function(path, name))
            continue;
        mk_buf_addf(&b->out->messages,
                    "    hint: %s contains `%.*s()`: compile the folder %.*s instead of one file\n",
                    path + len + 1, MK_STR_ARG(name), len, b->source->path);
        break;
    }
    globfree(&found);
}

static void add_folder_hints(const struct build *b, mk_str messages)
{
    static const char begin[] = "error: `", end[] = "` is used, but not defined";
    while (messages.len) {
        mk_str line = mk_str_cut(&messages, '\n');
        const char *from = line.len ? memmem(line.p, line.len, begin, strlen(begin)) : NULL,
                   *to = line.len ? memmem(line.p, line.len, end, strlen(end)) : NULL;
        if (from && to)
            add_folder_hint(b, mk_str_of(from + strlen(begin), (size_t)(to - from) - strlen(begin)));
    }
}

static bool link_objects(struct build *b, const char *next)
{
    struct dev_process_job job = {.output = mk_buf_growing(MESSAGES_MAX)};
    dev_argv_init(&job.args);
    dev_compile_add_compiler(&job.args, b->is_cpp);
    dev_argv_add(&job.args, MK_STR("-shared"));
    dev_argv_add(&job.args, MK_STR("-g"));
    for (size_t i = 0; i < b->n; i++)
        dev_argv_add(&job.args, mk_str_from_c(b->objects[i].is_cached ? b->objects[i].entry.object
                                                                      : b->objects[i].next));
    mk_buf_add(&job.args.text, mk_buf_str(&b->link.text));
    job.args.n += b->link.n;
    dev_argv_add(&job.args, MK_STR("-o"));
    dev_argv_add(&job.args, mk_str_from_c(next));
    dev_process_run_all(&job, 1);
    bool ok = dev_messages_check_undefined(&job.output, is_program_symbol) && job.code == 0;
    dev_messages_explain_duplicates(&job.output);
    mk_buf_add(&b->out->messages, mk_buf_str(&job.output));
    if (!ok)
        add_folder_hints(b, mk_buf_str(&job.output));
    dev_argv_free(&job.args);
    mk_buf_free(&job.output);
    return ok;
}

static void record_dependencies(struct build *b)
{
    struct dev_compile_result *out = b->out;
    mk_buf_clear(&out->files);
    for (size_t i = 0; i < b->n; i++)
        dev_inputs_add_files(&out->files, mk_buf_str(&b->objects[i].files));
    add_given_files(b->source, &out->files); /* those that did not compile are not in the list yet */
    out->stamp = dev_inputs_hash_with(mk_buf_str(&out->files), b->source);
    out->is_unsure = dev_inputs_changed_since(&b->snapshot, mk_buf_str(&out->files));
}

/* Keeps the new objects in the cache. */
static void store_objects(const struct build *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct object *o = &b->objects[i];
        mk_str files = mk_buf_str(&o->files);
        if (!o->is_cached && o->job.code == 0 && rename(o->next, o->entry.object) == 0)
            dev_cache_write_list(&o->entry, files, dev_inputs_hash(files), mk_buf_str(&o->job.output));
    }
}

static void run_build(struct build *b)
{
    struct dev_compile_result *out = b->out;
    char next[PATH_MAX];
    if (!dev_paths_format(next, "%s.%d", out->object, (int)getpid())) {
        mk_buf_addf(&out->messages, "%s: the path is too long\n", out->object);
        return;
    }
    b->snapshot = dev_inputs_take_snapshot(b->how->known, mk_buf_str(&out->files));
    if (!b->how->output)
        (void)unlink(b->entry.list);
    out->ok = compile_objects(b);
    if (!out->ok)
        dev_messages_explain_conflicts(&out->messages);
    out->ok = out->ok && link_objects(b, next);
    record_dependencies(b);
    if (out->ok && rename(next, out->object) < 0) {
        mk_buf_addf(&out->messages, "%s: %s\n", out->object, strerror(errno));
        out->ok = false;
    }
    if (!out->ok)
        (void)unlink(next);
    if (out->is_unsure || dev_inputs_hash(mk_buf_str(&out->files)) != out->stamp)
        return;
    store_objects(b);
    if (out->ok && !b->how->output)
        dev_cache_write_list(&b->entry, mk_buf_str(&out->files), out->stamp, mk_buf_str(&out->messages));
}

/* Looks up the service in the cache. The key consists of the commands that build it and the text of the main
 * source. */
static bool find_cached_service(struct build *b)
{
    struct dev_compile_result *out = b->out;
    struct mk_buf key = mk_buf_growing(4 * DEV_SOURCE_MAX);
    mk_buf_addf(&key, "%s %d %s %s", MK_VERSION, MK_ABI, b->source->path, b->source->name);
    mk_buf_add_char(&key, '\0');
    for (size_t i = 0; i < b->n; i++)
        mk_buf_add(&key, mk_buf_str(&b->objects[i].job.args.text));
    mk_buf_add(&key, mk_buf_str(&b->link.text));
    mk_buf_add(&key, mk_buf_str(&b->source->text));
    out->ok = dev_cache_locate(b->how->paths, mk_buf_str(&key), ".so", &b->entry) &&
              dev_cache_lookup(&b->entry, &out->files, &out->stamp, &out->messages);
    mk_buf_free(&key);
    (void)dev_paths_format(out->object, "%s", b->entry.object);
    return out->was_cached = out->ok;
}

void dev_compile(const struct dev_compile *how, const struct dev_source *source,
                 struct dev_compile_result *out)
{
    struct build b = {.how = how, .source = source, .out = out};
    *out = (struct dev_compile_result){.messages = mk_buf_growing(MESSAGES_MAX),
                                       .files = mk_buf_growing(FILES_MAX)};
    dev_argv_init(&b.link);
    add_given_files(source, &out->files);
    out->stamp = dev_inputs_hash_with(mk_buf_str(&out->files), source);
    bool ok = check_service_source(source, &out->messages) && begin_build(&b);
    if (ok && how->output)
        ok = dev_paths_format(out->object, "%s", how->output);
    if (ok && (how->output || !find_cached_service(&b)))
        run_build(&b);
    free_build(&b);
}

void dev_compile_result_free(struct dev_compile_result *c)
{
    mk_buf_free(&c->messages);
    mk_buf_free(&c->files);
}
