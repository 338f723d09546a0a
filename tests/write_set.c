#include "write_set.h"

#include <stdio.h>
#include <string.h>

static const char* const kClasses[] = {"even", "odd"};
static const char kText[] = "a text";

void write_set_pixels(unsigned number, unsigned char* pixels) {
  for (unsigned i = 0; i < kSide * kSide * 3; ++i) pixels[i] = (unsigned char)(i * number + i / 7);
}

static l3_image image_of(const unsigned char* pixels) {
  l3_image image = l3_image_init();
  image.width = image.height = kSide;
  image.bits = 8;
  image.colour = L3_COLOUR_RGB;
  image.pixels = pixels;
  return image;
}

static l3_status add_all(l3_writer* writer, l3_data_error* error) {
  static unsigned char pixels[kSide * kSide * 3];
  const l3_image image = image_of(pixels);
  for (unsigned i = 0; i < kImages + 2; ++i) {
    char name[16], number[16];
    sprintf(name, "%02u.png", i);
    sprintf(number, "%u", i);
    l3_writer_sample sample = l3_writer_sample_init();
    sample.name = name;
    if (i < kImages) {
      sample.class_name = kClasses[i % 2];
      sample.metadata = number;
      sample.metadata_size = strlen(number);
    } else {
      sample.group = 7;
      sample.role = i == kImages ? "image" : "mask";
      if (i == kImages) sample.label = 1;
    }
    write_set_pixels(i, pixels);
    const l3_status status = l3_writer_add_image(writer, &image, &sample, error);
    if (status != L3_OK) return status;
  }
  l3_writer_sample text = l3_writer_sample_init();
  text.role = "text";
  return l3_writer_add_bytes(writer, kText, sizeof(kText), &text, error);
}

l3_status write_set(const char* folder, unsigned threads, l3_data_error* error) {
  l3_writer_options options = l3_writer_options_init();
  options.threads = threads;
  options.shard_bytes = 8000;
  options.method = L3_METHOD_FAST;
  options.classes = kClasses;
  options.class_count = 2;
  l3_writer* writer = NULL;
  l3_status status = l3_writer_open(folder, &options, &writer, error);
  if (status == L3_OK) status = add_all(writer, error);
  if (status == L3_OK) status = l3_writer_finish(writer, error);
  l3_writer_close(writer);
  return status;
}

static l3_status wrong(l3_data_error* error, unsigned number, const char* what) {
  error->status = L3_ERROR_CORRUPT;
  sprintf(error->reason, "sample %u has another %s", number, what);
  return L3_ERROR_CORRUPT;
}

static int is_text(const char* text, size_t size, const char* expected) {
  return size == strlen(expected) && memcmp(text, expected, size) == 0;
}

static l3_status compare(const l3_data_set* set, unsigned number, l3_data_error* error) {
  static unsigned char file[1 << 16], pixels[kSide * kSide * 3], expected[kSide * kSide * 3];
  l3_data_sample sample = l3_data_sample_init();
  l3_status status = l3_data_get(set, number, &sample);
  if (status != L3_OK) return status;
  status = l3_data_read(set, number, file, sizeof(file), error);
  if (status != L3_OK) return status;
  const int is_last = number == kImages + 2;
  char name[16], digits[16];
  sprintf(name, is_last ? "%08u" : "%02u.png", number);
  sprintf(digits, "%u", number);
  if (!is_text(sample.name, sample.name_size, name)) return wrong(error, number, "name");
  if (sample.group != (is_last ? kImages + 1 : number < kImages ? number : kImages)) {
    return wrong(error, number, "group");
  }
  if (!is_text(sample.role, sample.role_size, is_last ? "text" : number == kImages + 1 ? "mask" : "image")) {
    return wrong(error, number, "role");
  }
  if (sample.label != (is_last ? L3_NO_LABEL : number < kImages ? number % 2 : 1)) return wrong(error, number, "label");
  if (!is_text((const char*)sample.metadata, sample.metadata_size, number < kImages ? digits : "")) {
    return wrong(error, number, "metadata");
  }
  if (is_last) {
    const int is_same =
        sample.kind == L3_DATA_BYTES && sample.size == sizeof(kText) && memcmp(file, kText, sizeof(kText)) == 0;
    return is_same ? L3_OK : wrong(error, number, "text");
  }
  if (l3_decode(file, (size_t)sample.size, NULL, pixels, sizeof(pixels), 0, NULL) != L3_OK) {
    return wrong(error, number, "file");
  }
  write_set_pixels(number, expected);
  return memcmp(pixels, expected, sizeof(pixels)) == 0 ? L3_OK : wrong(error, number, "image");
}

l3_status read_set(const char* folder, l3_data_error* error) {
  l3_data_set* set = NULL;
  l3_status status = l3_data_open(folder, NULL, &set, error);
  if (status != L3_OK) return status;
  l3_data_info info = l3_data_info_init();
  status = l3_data_describe(set, &info);
  if (status == L3_OK && (info.samples != kImages + 3 || info.groups != kImages + 2 || info.shards < 2)) {
    status = wrong(error, (unsigned)info.samples, "number of samples, groups or shards");
  }
  const char* const odd = l3_data_class(set, 1);
  if (status == L3_OK && (info.classes != 2 || odd == NULL || strcmp(odd, "odd") != 0)) {
    status = wrong(error, 0, "class");
  }
  for (unsigned i = 0; i < kImages + 3 && status == L3_OK; ++i) status = compare(set, i, error);
  l3_data_close(set);
  return status;
}
