/* SPDX-License-Identifier: Apache-2.0 */
#include "command_new.h"

#include "compile_commands.h"
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the new project. Each `@` in `name` and `text` stands for the name of the service. */
struct file {
    const char *name, *text;
};

static const struct file files[] = {
    {"@.c", "/* The service @. Try it with `monkey run @.c`. */\n"
            "#include <duda.h>\n"
            "\n"
            "static int hello(struct duda_ctx *d)\n"
            "{\n"
            "    return duda_printf(d, \"hello %s\\n\", duda_query_or(d, \"name\", \"world\"));\n"
            "}\n"
            "\n"
            "static int square(struct duda_ctx *d)\n"
            "{\n"
            "    int64_t n;\n"
            "    if (!duda_param_int(d, \"n\", &n) || n < -1000000 || n > 1000000)\n"
            "        return 400;\n"
            "    return duda_render(d, \"square.html\", duda_value_members({\"n\", duda_value_integer(n)},\n"
            "                                                             {\"square\", duda_value_integer(n "
            "* n)}));\n"
            "}\n"
            "\n"
            "DUDA_SERVICE(@,\n"
            "    DUDA_GET(\"/\", hello, \"Greets.\"),\n"
            "    DUDA_GET(\"/square/:n<int>\", square, \"Computes a square.\"));\n"},
    {"@_test.c", "/* Tests of the service @: `monkey test`. */\n"
                 "#include <duda/test.h>\n"
                 "\n"
                 "DUDA_TEST(greets)\n"
                 "{\n"
                 "    struct duda_test_response reply = duda_test_get(t, \"/?name=you\");\n"
                 "    duda_expect_status(t, reply, 200);\n"
                 "    duda_expect_text(t, reply.body, \"hello you\\n\");\n"
                 "}\n"
                 "\n"
                 "DUDA_TEST(computes)\n"
                 "{\n"
                 "    duda_expect_contains(t, duda_test_get(t, \"/square/7\").body, \" = 49\");\n"
                 "    duda_expect_status(t, duda_test_get(t, \"/square/9999999\"), 400);\n"
                 "    duda_expect_status(t, duda_test_get(t, \"/square/x\"), 404);\n"
                 "}\n"},
    {"Makefile", "# make: the object that a server loads; make run, make test: while you write\n"
                 "MONKEY ?= monkey\n"
                 "\n"
                 "monkey-@.so: $(filter-out %_test.c,$(wildcard *.c)) $(wildcard *.h)\n"
                 "\t$(MONKEY) build -o $@ .\n"
                 "\n"
                 "run:\n"
                 "\t$(MONKEY) run -i dev.conf .\n"
                 "\n"
                 "test:\n"
                 "\t$(MONKEY) test -i dev.conf\n"
                 "\n"
                 "clean:\n"
                 "\trm -f monkey-@.so\n"
                 "\n"
                 ".PHONY: run test clean\n"},
    {"@.conf", "# Serves @: monkey -c @.conf\n"
               "[SERVER]\n"
               "    Listen        127.0.0.1:2001\n"
               "\n"
               "[PLUGINS]\n"
               "    Load          ./monkey-@.so\n"
               "\n"
               "[HOST]\n"
               "    DocumentRoot  html\n"},
    {"README.md",
     "# @\n"
     "\n"
     "A web service in C, for Duda and Monkey.\n"
     "\n    make run     serve it, and rebuild it when a file changes\n"
     "    make test    run the tests, *_test.c\n"
     "    make         build monkey-@.so; `monkey -c @.conf` serves it\n"
     "\n"
     "All *.c files of the folder form the service. templates/ contains its pages, and dev.conf the\n"
     "configuration of `make run`. The server also serves the files in html/.\n"},
    {"dev.conf",
     "# The packages of the service and their sections, for `make run` and `make test`. For SQLite:\n"
     "#\n"
     "# [PLUGINS]\n"
     "#     Load        duda-sqlite\n"
     "#\n"
     "# [SQLITE]\n"
     "#     File        @.db\n"
     "#     Migrations  migrations\n"},
    {"templates/square.html", "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>A square</title>\n"
                              "<h1>{{n}}² = {{square | number}}</h1>\n"
                              "<p><a href=\"{{url_for \"square\" n=square}}\">Its square</a>\n"},
    {".gitignore", "monkey-@.so\ncompile_commands.json\n.env\n"},
    {"html/about.html", "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>@</title>\n<h1>@</h1>\n"
                        "<p><a href=/>Get a greeting</a>, or see <a href=/square/12>a square</a>.</p>\n"},
};

/* Replaces each `@` with the name of the service, except in `$@`, a variable of make(1). */
static void expand_service_name(struct mk_buf *out, const char *text, const char *name)
{
    char last = 0;
    for (; *text; last = *text++)
        if (*text == '@' && last != '$')
            mk_buf_add(out, mk_str_from_c(name));
        else
            mk_buf_add_char(out, *text);
}

/* Never overwrites an existing file. */
static bool write_project_file(const char *folder, const struct file *f, const char *name)
{
    char leaf[PATH_MAX], path[PATH_MAX];
    struct mk_buf text = mk_buf_growing(64 * 1024), file = mk_buf_fixed(leaf, sizeof leaf - 1);
    expand_service_name(&text, f->text, name);
    expand_service_name(&file, f->name, name);
    leaf[file.len] = '\0';
    FILE *out = dev_paths_format(path, "%s/%s", folder, leaf) ? fopen(path, "wxe") : NULL;
    bool ok = out && !text.failed && fwrite(text.p, 1, text.len, out) == text.len;
    ok = out && fclose(out) == 0 && ok;
    mk_buf_free(&text);
    return ok || dev_print_error(false, "new", leaf, strerror(errno));
}

/* Writes compile_commands.json, from which editors know where <duda.h> is. Its paths are those of this
 * machine. */
static void write_compile_commands(const char *name)
{
    const struct dev_service_words words = {&name, 1};
    struct dev_paths paths;
    struct dev_source source;
    char problem[DEV_PROBLEM_MAX];
    if (!dev_service_load(&source, &words, problem))
        return;
    if (dev_paths_find(&paths))
        (void)dev_compile_commands_write(&paths, &source, &words, NULL);
    dev_source_free(&source);
}

static bool is_valid_service_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");
    return n > 0 && n < DEV_NAME_MAX && !s[n] && (s[0] < '0' || s[0] > '9');
}

static int run_new_command(int argc, char **argv)
{
    struct dev_options opts = {.usage = "usage: monkey new NAME\n",
                               .help = "Creates the folder NAME with a service, its tests, a template, a "
                                       "Makefile and configurations.\n\n  -h, --help  this text\n",
                               .args_min = 1,
                               .args_max = 1};
    static const char *const folders[] = {"", "/html", "/templates"};
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    const char *name = opts.args[0];
    if (!is_valid_service_name(name))
        return dev_print_error(DEV_EXIT_USAGE, "new", name,
                               "a name consists of lower-case letters and digits, and begins with a letter");
    for (size_t i = 0; i < MK_LEN(folders); i++) {
        char path[PATH_MAX];
        if (!dev_paths_format(path, "%s%s", name, folders[i]) || mkdir(path, 0777) < 0)
            return dev_print_error(DEV_EXIT_FAILED, "new", name, strerror(errno));
    }
    bool ok = true;
    for (size_t i = 0; ok && i < MK_LEN(files); i++)
        ok = write_project_file(name, &files[i], name);
    if (!ok)
        return DEV_EXIT_FAILED;
    write_compile_commands(name);
    printf("Created %s. Next:\n\n    cd %s\n    monkey run .\n    monkey test\n", name, name);
    return fflush(stdout) == 0 ? DEV_EXIT_OK : DEV_EXIT_FAILED;
}

const struct mk_command dev_command_new = {
    .name = "new",
    .args = "NAME",
    .help = "Create a folder with a new service.",
    .run = run_new_command,
};
