/* fathom: which command is meant. */
#include "command.h"
#include "output.h"
#include "terminal.h"

#include <fathom.h>
#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
    {"ocr", "fathom ocr", command_ocr},
    {"inspect", "fathom inspect", command_inspect},
    {"bench", "fathom bench", command_bench},
    {"help", "fathom help", command_help},
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static bool is(const char *arg, const char *long_name, const char *short_name)
{
    return strcmp(arg, long_name) == 0 || strcmp(arg, short_name) == 0;
}

int main(int argc, char **argv)
{
    output_setup();
    if (argc < 2) {
        print_error("no FILE to read; fathom help shows how");
        return EXIT_USAGE;
    }
    if (is(argv[1], "--version", "-V")) {
        printf("fathom %s\n", fathom_version());
        return EXIT_DONE;
    }
    const struct command *command =
        command_find(is(argv[1], "--help", "-h") || is(argv[1], "-?", "-?") ? "help" : argv[1]);
    if (command) {
        argv[1] = command->program;
        return command->run(argc - 1, argv + 1);
    }
    argv[0] = command_find("ocr")->program;
    return command_ocr(argc, argv);
}
