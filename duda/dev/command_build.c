/* SPDX-License-Identifier: Apache-2.0 */
#include "command_build.h"

#include "compile.h"
#include "options.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: monkey build [-o FILE] SOURCE.c\n";
static const char help[] =
    "Compiles a Duda service with optimization into a shared object that the server loads.\n"
    "\n"
    "  -o, --output FILE   output file; default: monkey-NAME.so in the current folder\n"
    "  -h, --help          print this help\n"
    "\n"
    "A comment in the source may hold `sources: FILE.c...`, `pkg-config: NAME...` and `cflags: FLAG...`.\n"
    "The environment variable CC sets the compiler.\n";

static void print_load_hint(const char *object, const char *name)
{
    printf("Built %s. To serve it on all hosts, add to the configuration:\n\n    [PLUGINS]\n        Load  "
           "%s%s\n\n",
           object, strchr(object, '/') ? "" : "./", object);
    printf("To serve it only on one host, below a path, also add to that host:\n\n    [ROUTES]\n        "
           "/%s/*  %s\n",
           name, name);
}

/* Checks the output file before the compiler runs, because the compiler would report the error for a
 * temporary file. */
static bool can_write_output(const char *output)
{
    char folder[PATH_MAX];
    mk_str path = mk_str_from_c(output);
    size_t slash = mk_str_find_last(path, '/');
    if (slash == MK_STR_NONE)
        return access(".", W_OK) == 0;
    return dev_paths_format(folder, "%.*s", MK_STR_ARG(mk_str_first(path, slash ? slash : 1))) &&
           access(folder, W_OK) == 0;
}

/* Loads the object, because undefined symbols would otherwise only be noticed when the server loads it.
 * Ignores any other failure, which may only mean that the compiler targets another machine. */
static bool has_no_undefined_symbols(const char *object)
{
    char path[PATH_MAX];
    void *handle = realpath(object, path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *error = handle ? NULL : dlerror();
    if (handle)
        dlclose(handle);
    if (!error || !strstr(error, "undefined symbol"))
        return true;
    (void)unlink(path);
    return dev_print_error(false, "build", NULL, error);
}

static int build_object(const struct dev_paths *paths, struct dev_source *source, const char *output)
{
    char path[PATH_MAX];
    struct dev_compile_result made;
    if (!output && dev_paths_format(path, "monkey-%s.so", source->name))
        output = path;
    const struct dev_compile how = {.paths = paths,
                                    .kind = DEV_COMPILE_DEPLOY,
                                    .color = isatty(STDERR_FILENO) == 1 && !getenv("NO_COLOR"),
                                    .output = output};
    if (!can_write_output(output))
        return dev_print_error(DEV_EXIT_FAILED, "build", output, strerror(errno));
    dev_compile(&how, source, &made);
    dev_print_text(stderr, mk_buf_str(&made.messages));
    bool ok = made.ok && has_no_undefined_symbols(output);
    if (ok)
        print_load_hint(output, source->name);
    int code = ok ? DEV_EXIT_OK : DEV_EXIT_FAILED;
    dev_compile_result_free(&made);
    return code;
}

static int run_build_command(int argc, char **argv)
{
    const char *output = NULL;
    const struct dev_option options[] = {{'o', "output", &output, NULL}};
    struct dev_options opts = {
        .usage = usage, .help = help, .options = options, .n_options = 1, .args_min = 1, .args_max = 1};
    struct dev_paths paths;
    struct dev_source source;
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    if (!dev_source_load(&source, opts.args[0]))
        return dev_print_error(DEV_EXIT_FAILED, "build", opts.args[0], strerror(errno));
    code = dev_paths_find(&paths) ? build_object(&paths, &source, output) : DEV_EXIT_FAILED;
    dev_source_free(&source);
    return code;
}

const struct mk_command dev_command_build = {
    .name = "build",
    .args = "SOURCE.c",
    .help = "Compile a service into a shared object that the server can load.",
    .run = run_build_command,
};
