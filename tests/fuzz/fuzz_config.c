/* A config.json, and an image processor's file, of any bytes. */
#include "fuzz.h"
#include "weights/config_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json j;
    struct fathom_err err;
    struct model_config c = {.kind = size % 2 ? MODEL_OCR1 : MODEL_OCR2};
    bool kind_known;
    if (json_parse(&j, (const char *)data, size, &err))
        return 0;
    struct config_reader r = {&j, &err, FATHOM_OK};
    config_from_json(&c, &kind_known, &r, json_root(&j));
    config_require(c.kind, &r, json_root(&j));
    r.status = FATHOM_OK;
    c = config_ocr2_published();
    config_view_from_json(&c.view, &r, json_root(&j));
    json_free(&j);
    return 0;
}
