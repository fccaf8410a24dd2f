/* fathom help: the way in. */
#include "command.h"
#include "terminal.h"

#include <stdio.h>

static const char overview[] = "Reads pages with DeepSeek-OCR-2 or DeepSeek-OCR, on the processor you have.\n"
                               "\n"
                               "  fathom page.png                          Markdown on the terminal\n"
                               "  fathom *.png > pages.md                  many pages, one document\n"
                               "  fathom --format json page.png            blocks with boxes, one line a page\n"
                               "  fathom --format pdf -o new.pdf scan.png  the same page, searchable\n"
                               "  fathom --format md,json -o out/ scans/   a folder, each document in two formats\n"
                               "  fathom --job night.job -o out/ scans/    goes on where it was killed\n"
                               "  fathom --task text receipt.jpg           plain reading, no layout\n"
                               "  fathom -m DeepSeek-OCR-2 page.png        with weights that you downloaded\n"
                               "  fathom inspect DeepSeek-OCR-2            what a model folder holds and needs\n"
                               "\n"
                               "Commands:\n"
                               "  fathom [ocr] FILE...    read pictures of pages, and documents\n"
                               "  fathom chat             talk with DeepSeek-V4\n"
                               "  fathom generate         DeepSeek-V4's reply to a prompt\n"
                               "  fathom inspect [MODEL]  describe a model folder\n"
                               "  fathom bench            time the stages against what the machine can do\n"
                               "  fathom help [COMMAND]   this, or all options of a command\n"
                               "  fathom --version\n"
                               "\n"
                               "Without -m DIR or FATHOM_MODEL in the environment a small built-in model reads: quick, "
                               "and good for clean print only.\n"
                               "A file with the name of a command: fathom ocr bench, or fathom ./bench.\n";

int command_help(int argc, char **argv)
{
    if (argc > 2) {
        print_error("help takes one command, not '%s' as well", argv[2]);
        return EXIT_USAGE;
    }
    const struct command *command = command_find(argc < 2 ? "help" : argv[1]);
    if (!command) {
        print_error("'%s' is not a command; fathom help lists them", argv[1]);
        return EXIT_USAGE;
    }
    if (command->run == command_help) {
        fputs(overview, stdout);
        return EXIT_DONE;
    }
    return command->run(2, (char *[]){command->program, "--help", NULL});
}
