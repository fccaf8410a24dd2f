/* fathom: DeepSeek-OCR, DeepSeek-OCR-2 and DeepSeek-V4 in C.
 *
 * The only installed header. A model is read-only once open and may be shared between threads; a context holds one
 * KV cache and one position and belongs to one thread at a time. Nothing here prints or exits: what can fail returns
 * a status and fills the err that it is given.
 */
#ifndef FATHOM_H
#define FATHOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FATHOM_API __attribute__((visibility("default")))

enum fathom_status {
    FATHOM_OK = 0,
    FATHOM_EINVAL,       /* a wrong argument or option                                     */
    FATHOM_ENOMEM,       /* out of memory, or more memory would be needed than was allowed */
    FATHOM_EIO,          /* the system could not open, read or write a file                */
    FATHOM_EFORMAT,      /* a file is not what it claims to be                             */
    FATHOM_ELIMIT,       /* a stated limit (pixels, bytes, tokens, depth) is exceeded      */
    FATHOM_EUNSUPPORTED, /* well formed, but nothing this build can do                     */
    FATHOM_ECANCELLED,   /* a callback asked to stop                                       */
    FATHOM_ENUMERIC,     /* NaN or infinity where the model must give a number             */
    FATHOM_EPASSWORD,    /* a document is encrypted, and the password is missing or wrong  */
};

/* status and one message: what is wrong first, the subject quoted, no full stop. */
struct fathom_err {
    enum fathom_status status;
    char message[1024];
};

/* "out of memory", "bad argument", ...; never NULL. */
FATHOM_API const char *fathom_status_name(enum fathom_status status);

/* "0.1.0" */
FATHOM_API const char *fathom_version(void);

/* ---- model ------------------------------------------------------------------------------------------------- */

struct fathom_model;

/* Opens a model folder (config.json, *.safetensors, tokenizer.json, preprocessor_config.json when there).
 * The weights are mapped, not copied. Every tensor that the model needs is checked here. */
FATHOM_API enum fathom_status fathom_model_open(const char *dir, struct fathom_model **out, struct fathom_err *err);
FATHOM_API void fathom_model_close(struct fathom_model *model);

/* Writes an account of the model (kind, sizes, tensors with dtype and shape, memory) to a stream-like sink;
 * json selects one JSON object instead of text. */
typedef bool fathom_write_fn(void *user, const char *text, size_t n);
FATHOM_API enum fathom_status fathom_model_inspect(const struct fathom_model *model, bool json, fathom_write_fn *write,
                                                   void *user, struct fathom_err *err);

/* Number of tokens of UTF-8 text under the model's tokenizer; special tokens are recognised when parse_special. */
FATHOM_API enum fathom_status fathom_count_tokens(const struct fathom_model *model, const char *text, size_t n_bytes,
                                                  bool parse_special, size_t *out, struct fathom_err *err);

/* ---- context ----------------------------------------------------------------------------------------------- */

struct fathom_context;

enum fathom_dtype {
    FATHOM_F32,  /* activations in float32                                                         */
    FATHOM_BF16, /* activations rounded to bfloat16 where the reference implementation rounds them */
};

struct fathom_context_options {
    int n_threads;           /* 0: one for every processor this process may use              */
    enum fathom_dtype dtype; /* of the activations                                            */
    size_t n_ctx;            /* tokens the KV cache can hold; 0: the model's trained length   */
    const char *isa;         /* NULL: the best there is; "ref", "avx2", "avx512" force a level */
    const char *device;      /* NULL or "cpu"; "cuda", "cuda:N"; "auto": a GPU when there is one */
    bool exact;              /* on a GPU, sums in the CPU's order: a page gives the same bytes as there */
};

FATHOM_API enum fathom_status fathom_context_create(const struct fathom_model *model,
                                                    const struct fathom_context_options *options,
                                                    struct fathom_context **out, struct fathom_err *err);
FATHOM_API void fathom_context_destroy(struct fathom_context *ctx);

/* What the context runs on: "cpu", or the GPU's name; lives as long as the context. *why (may be NULL): with "auto" on the
 * CPU one line that says why, else NULL. */
FATHOM_API const char *fathom_context_device(const struct fathom_context *ctx, const char **why);

/* ---- reading pages ----------------------------------------------------------------------------------------- */

enum fathom_alpha {
    FATHOM_ALPHA_WHITE, /* composite on white; 16-bit samples scaled to 8 bits              */
    FATHOM_ALPHA_DROP,  /* as the reference: stored colours, 16-bit greys saturate at 255 */
};

/* How a page becomes views (spec deepseek-ocr §2.1). DeepSeek-OCR-2 knows FATHOM_MODE_BASE and FATHOM_MODE_GUNDAM. */
enum fathom_mode {
    FATHOM_MODE_DEFAULT, /* what the model folder says, else Gundam           */
    FATHOM_MODE_TINY,    /* 512 px, the page stretched                        */
    FATHOM_MODE_SMALL,   /* 640 px, the page stretched                        */
    FATHOM_MODE_BASE,    /* 1024 px, the page fitted and padded               */
    FATHOM_MODE_LARGE,   /* 1280 px, the page fitted and padded               */
    FATHOM_MODE_GUNDAM,  /* tiles and a global view of 1024 px                */
};

struct fathom_read_options {
    const char *prompt;       /* with one <image>; NULL: grounded Markdown                         */
    int max_tokens;           /* 0: as many as the context holds                                   */
    int ngram, ngram_window;  /* windowed no-repeat guard; ngram 0: off                            */
    float temperature, top_p; /* temperature 0: greedy                                             */
    uint64_t seed;            /* for temperature > 0                                               */
    enum fathom_mode mode;    /* views of a page                                                   */
    int max_tiles;            /* of Gundam; 0: as many as the model was published with             */
    bool no_retry;            /* a page that looped or hit the limit keeps its first attempt       */
    const char *pages;        /* "1-3,7,10-", 1-based; NULL: all                                   */
    double dpi;               /* at which pages without pixels of their own are drawn; 0: 144      */
    const char *password;     /* for encrypted documents, or NULL                                  */
    enum fathom_alpha alpha;  /* how transparent pictures become RGB                               */
    bool ignore_icc;          /* stored colours as they are, as the reference                      */
    bool text_layer;          /* also hand over the text that a document carries, never used to read */
    size_t max_pixels;        /* a page with more is an error, found before memory is asked for; 0: 178,956,970, that
                               * is 512 MiB of pixels                                               */
};

/* The defaults: greedy, guard 20/90, retries, alpha on white, colour profiles applied. */
FATHOM_API struct fathom_read_options fathom_read_defaults(void);

/* Whether fathom_read_options.pages is written as it should be, whatever the document: FATHOM_EINVAL, and what is wrong.
 * Items are "N", "N-M", "N-" and "-M", in any order; each page is read once, in ascending order. */
FATHOM_API enum fathom_status fathom_check_pages(const char *pages, struct fathom_err *err);

enum fathom_page_status {
    FATHOM_PAGE_OK,        /* the model ended the page itself              */
    FATHOM_PAGE_TRUNCATED, /* the token limit came first                   */
    FATHOM_PAGE_LOOPED,    /* the text repeated itself and was cut         */
    FATHOM_PAGE_RETRIED,   /* ok, at a later attempt                       */
    FATHOM_PAGE_FAILED,    /* no text; err says why                        */
};
FATHOM_API const char *fathom_page_status_name(enum fathom_page_status status);

struct fathom_stats {
    double decode_image_ms, vision_ms, prefill_ms, decode_ms;
    size_t n_views, n_prompt_tokens, n_output_tokens;
    double vision_flop, prefill_flop; /* multiplications and additions that the mathematics needs    */
    double decode_bytes;              /* weights and cache that decoding had to read                 */
    size_t arena_peak_bytes;          /* activations and scratch, at their highest               */
    size_t vision_peak_bytes;         /* the same, during the vision tower alone                 */
    size_t kv_bytes;                  /* the KV cache                                            */
    size_t packed_bytes;              /* copies of weights in another layout                     */
    size_t mapped_bytes;              /* weights, mapped from their files                        */
};

/* A box in pixels of the original picture (after EXIF orientation): x0 <= x1, y0 <= y1. */
struct fathom_box {
    int x0, y0, x1, y1;
};

/* One attempt at a page: what was tried and how it ended. */
struct fathom_attempt {
    const char *what; /* "first"; "wide guard": the no-repeat guard sees further back; "mode base", "mode gundam": other
                       * views; "free prompt": text without layout; "halves": upper and lower half apart */
    enum fathom_page_status status;
    size_t n_tokens;
    double ms;   /* that it took, without the vision tokens and the prompt that it shared with an earlier one */
    bool chosen; /* gave the page's text; true of one attempt of each page that was read                      */
};

/* One piece of a page in reading order. All pointers belong to the page. */
struct fathom_block {
    const char *label; /* "title", "text", "image", ...; "" for text outside any tag */
    const char *text;  /* what follows the tag, UTF-8                                */
    const struct fathom_box *boxes;
    size_t n_boxes;
};

struct fathom_page {
    size_t number;  /* 1-based within the document */
    size_t n_pages; /* of the document             */
    enum fathom_page_status status;
    struct fathom_err err; /* why it failed                                  */
    int width, height;     /* pixels of the page as read, upright; 0 when they were not got */
    const char *raw;       /* the model's own output, tags kept; never NULL  */
    const char *markdown;  /* tags stripped as the reference does            */
    const struct fathom_block *blocks;
    size_t n_blocks;
    const struct fathom_attempt *attempts; /* in order; several when the page had to be read again */
    size_t n_attempts;
    struct fathom_stats stats; /* of the attempt that gave the text */

    /* The page's own size: points (1/72 inch) of the page as it is shown, upright and cropped. Of pictures: from their
     * resolution, or as if they had 72 pixels an inch when they state none. */
    double width_pt, height_pt;
    /* From pixels of the page (x right, y down) to the document's own coordinates, which for a PDF are its default user
     * space before /Rotate: X = a x + c y + e, Y = b x + d y + f. For pictures the points of width_pt, y down. */
    double to_document[6];
    const char *text_layer; /* UTF-8 text that the document carries for this page, when asked for; NULL: none */

    /* Pixels, [height, width, 3] u8, and, when the page is exactly one JPEG, upright and uncropped, its bytes. Both are
     * NULL for a page that was put together again (fathom_page_restore). */
    const uint8_t *rgb;
    const uint8_t *jpeg;
    size_t jpeg_bytes;
};

/* What becomes of a page whose pixels are there. */
enum fathom_choice {
    FATHOM_READ, /* it is read                                                              */
    FATHOM_SKIP, /* it is not, and on_page does not see it: the caller has its text already */
    FATHOM_STOP, /* the job ends with FATHOM_ECANCELLED                                     */
};

/* All may be NULL. Returning false stops the job with FATHOM_ECANCELLED. Pointers live until the call returns. */
struct fathom_callbacks {
    void *user;
    bool (*on_stage)(void *user, const char *stage, size_t done, size_t total); /* "vision", "prefill", "decode" */
    /* The model's output as it comes, in whole UTF-8 characters. What counts in the end is page->raw: a repetition is cut
     * from it, the page may be read again, and boxes of halves are still in each half's own coordinates here. */
    bool (*on_text)(void *user, const char *raw, size_t n_bytes);
    bool (*on_page)(void *user, const struct fathom_page *page);
    /* Before each attempt but the first: the page is read once more, and on_text begins anew. NULL: on_text is not called
     * for these attempts. */
    bool (*on_attempt)(void *user, const char *what);
    /* Before a page is read: its numbers, sizes and pixels, but no text. NULL: every page is read. */
    enum fathom_choice (*on_pixels)(void *user, const struct fathom_page *page);
};

/* Reads the pages of a picture or document file ("-": standard input). A page that fails is reported through on_page and
 * the rest goes on; the returned status is that of the file itself (could it be opened at all) or of cancellation. */
FATHOM_API enum fathom_status fathom_read_file(struct fathom_context *ctx, const char *path,
                                               const struct fathom_read_options *options,
                                               const struct fathom_callbacks *callbacks, struct fathom_err *err);

/* The same for one page of pixels: rgb is [height, width, 3] u8, sRGB, rows packed, borrowed for the call. */
FATHOM_API enum fathom_status fathom_read_pixels(struct fathom_context *ctx, const uint8_t *rgb, int width, int height,
                                                 const struct fathom_read_options *options,
                                                 const struct fathom_callbacks *callbacks, struct fathom_err *err);

/* Puts a page together again from what was kept of it: fills blocks and markdown from kept->raw and copies the other
 * fields, but no pixels. *out is the caller's, for fathom_page_free. */
FATHOM_API enum fathom_status fathom_page_restore(const struct fathom_page *kept, struct fathom_page **out,
                                                  struct fathom_err *err);
FATHOM_API void fathom_page_free(struct fathom_page *page); /* NULL is fine */

/* A box in the document's own coordinates, through to_document: [x0, y0, x1, y1] with x0 <= x1 and y0 <= y1. */
FATHOM_API void fathom_page_box_pt(const struct fathom_page *page, const struct fathom_box *box, double out[4]);

/* ---- writing pages (docs/formats.md) ----------------------------------------------------------------------- */

enum fathom_format {
    FATHOM_MARKDOWN,
    FATHOM_JSON,       /* one object for the document                                          */
    FATHOM_JSON_LINES, /* one object a page and line                                           */
    FATHOM_STATS,      /* what the pages cost: one JSON object a page and line                 */
    FATHOM_TEXT,       /* plain text in reading order                                          */
    FATHOM_HTML,       /* one self-contained, sanitised file                                   */
    FATHOM_HOCR,       /* hOCR 1.2, blocks as areas                                            */
    FATHOM_ALTO,       /* ALTO 4, blocks as text blocks                                        */
    /* The pages' pictures with invisible text; a page that was read must still have its pixels. */
    FATHOM_SEARCHABLE_PDF,
};

struct fathom_writer_options {
    const char *file;  /* the document's name, for titles and the JSON, any bytes; NULL: ""       */
    const char *model; /* named as what read it; NULL: not said                                  */
    /* The folder in links to figures, such as "report.images/"; what fathom_page_figure_name gives comes behind it.
     * NULL: Markdown links to images/K.jpg as a page's own does, and the other formats link to nothing. */
    const char *figures;
    const struct fathom_read_options *read; /* told in the JSON, but for the password; NULL: not said */
    bool no_stats;                          /* the JSON leaves out what differs from run to run       */
};

/* Writes pages as one document in a format, in the order they come; options and what they point to are borrowed until the
 * end. Memory does not grow with the number of pages but for a PDF's table of objects. A failed page is written as such,
 * and so is a file of which no page could be read, as a failed page of number 0. close writes what ends the document;
 * discard does not; both free the writer. Once the sink has returned false nothing more is written, and each call fails
 * with FATHOM_EIO. */
struct fathom_writer;
FATHOM_API enum fathom_status fathom_writer_open(enum fathom_format format, const struct fathom_writer_options *options,
                                                 fathom_write_fn *write, void *user, struct fathom_writer **out,
                                                 struct fathom_err *err);
FATHOM_API enum fathom_status fathom_writer_page(struct fathom_writer *writer, const struct fathom_page *page,
                                                 struct fathom_err *err);
FATHOM_API enum fathom_status fathom_writer_close(struct fathom_writer *writer, struct fathom_err *err);
FATHOM_API void fathom_writer_discard(struct fathom_writer *writer); /* NULL is fine */

/* The figures of a page, counted from 0 as the K of images/K.jpg in its Markdown, and the name for the file of the k-th
 * one: "K.jpg", or "PAGE_K.jpg" where the document has several pages. */
enum { FATHOM_FIGURE_NAME = 48 };
FATHOM_API size_t fathom_page_figures(const struct fathom_page *page);
FATHOM_API void fathom_page_figure_name(const struct fathom_page *page, size_t k, char name[FATHOM_FIGURE_NAME]);

/* The k-th figure cut out of the page's pixels as a JPEG: the box round all its boxes. FATHOM_EINVAL when there is no k-th
 * one, when the model gave it no box, and for a page without pixels. */
FATHOM_API enum fathom_status fathom_page_figure_jpeg(const struct fathom_page *page, size_t k, fathom_write_fn *write,
                                                      void *user, struct fathom_err *err);

/* The page as a PNG with its boxes drawn, each with its number in reading order and its label in the colour of its kind.
 * FATHOM_EINVAL for a page without pixels. */
FATHOM_API enum fathom_status fathom_page_overlay_png(const struct fathom_page *page, fathom_write_fn *write,
                                                      void *user, struct fathom_err *err);

/* ---- text (DeepSeek-V4) ------------------------------------------------------------------------------------- */

/* A conversation with a DeepSeek-V4 model: what was said, and the state that the model has of it. One thread at a time. */
struct fathom_chat;

struct fathom_chat_options {
    const char *system;      /* in front of the conversation; NULL: nothing                                  */
    bool thinking;           /* the model thinks before it answers                                           */
    bool max_effort;         /* with thinking: as much as it can; needs fixed_texts                          */
    const char *fixed_texts; /* file that holds the published text of maximum effort, known by its SHA-256   */
    bool official_numerics;  /* keys and the indexer's rounded as the published code rounds them             */
    bool always_index;       /* run the indexer for every query: the same answers, for measuring             */
};

/* Fails with FATHOM_EUNSUPPORTED when the model is no DeepSeek-V4, and with FATHOM_ENOMEM when a context of
 * context->n_ctx tokens needs more memory than the machine has; n_ctx 0: up to 65,536, as memory allows. Strings are
 * copied. Activations are float32. */
FATHOM_API enum fathom_status fathom_chat_create(const struct fathom_model *model,
                                                 const struct fathom_context_options *context,
                                                 const struct fathom_chat_options *options, struct fathom_chat **out,
                                                 struct fathom_err *err);
FATHOM_API void fathom_chat_destroy(struct fathom_chat *chat); /* NULL is fine */

struct fathom_sampling {
    int max_tokens;           /* of a reply, thoughts included; 0: as many as the context holds             */
    float temperature, top_p; /* temperature 0: greedy                                                      */
    uint64_t seed;
    const char *const *stop; /* the answer ends before the first of these; thoughts are not looked at     */
    size_t n_stop;
};
FATHOM_API struct fathom_sampling fathom_sampling_defaults(void); /* as published: 1 and 1 */

/* Both may be NULL; returning false cancels. */
struct fathom_chat_callbacks {
    void *user;
    bool (*on_prefill)(void *user, size_t done, size_t total); /* tokens of the prompt; called often */
    bool (*on_text)(void *user, bool thinking, const char *text, size_t n_bytes); /* whole UTF-8 characters */
};

enum fathom_reply_end {
    FATHOM_REPLY_DONE,    /* the model ended it itself    */
    FATHOM_REPLY_STOPPED, /* one of the stop strings came */
    FATHOM_REPLY_LIMIT,   /* max_tokens                   */
    FATHOM_REPLY_CONTEXT, /* the context is full          */
};

struct fathom_reply {
    enum fathom_reply_end end;
    size_t n_prompt_tokens, n_new_tokens; /* of the whole prompt, and of it those that had to be worked through now */
    size_t n_output_tokens;
    double prefill_ms, decode_ms;
    uint64_t indexed_queries, unindexed_queries, scored_candidates; /* of the indexer, summed over its layers */
    size_t state_bytes;                                             /* that the conversation fills            */
};

/* Says UTF-8 text as the user and lets the model reply. Special tokens in text are text. When on_prefill cancels or
 * anything fails before the first word, the text counts as never said; when on_text cancels, the reply ends there and is
 * kept, and the status is FATHOM_ECANCELLED. A prompt longer than the context fails with FATHOM_ELIMIT. *reply is filled in
 * any case. */
FATHOM_API enum fathom_status fathom_chat_say(struct fathom_chat *chat, const char *text, size_t n_bytes,
                                              const struct fathom_sampling *sampling,
                                              const struct fathom_chat_callbacks *callbacks, struct fathom_reply *reply,
                                              struct fathom_err *err);

/* Forgets what was said; the system text stays. */
FATHOM_API void fathom_chat_reset(struct fathom_chat *chat);

/* ---- the machine ------------------------------------------------------------------------------------------- */

/* What this machine can do at most, measured for some tenths of a second: float32 fused multiply-adds with registers
 * only, and reading memory far larger than any cache, both with the context's threads and instruction set. */
struct fathom_machine {
    double fma_flop_s, read_bytes_s;
    const char *isa; /* "ref", "avx2", "avx512" */
    int n_threads;
};
FATHOM_API enum fathom_status fathom_measure_machine(struct fathom_context *ctx, struct fathom_machine *out,
                                                     struct fathom_err *err);

#ifdef __cplusplus
}
#endif
#endif
