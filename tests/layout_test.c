// Pins what programs that are compiled already rely on: the values of the enumerations of the public headers, and
// the size of each public structure and the place of its members on 64-bit machines. A wrong change does not compile.
//
// May change here: the size of a structure that begins with struct_size, together with new members at its end. They go
// behind the padding that is there now (l3_info ends in 4 bytes of it), so that struct_size tells who knows them.
#include <stddef.h>
#include <stdint.h>

#include "l3/l3.h"
#include "l3/l3_data.h"
#include "l3/l3_loader.h"
#include "l3/l3_writer.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
#define VALUE(name, value) _Static_assert((name) == (value), #name " has another value")

SIZE(l3_status, 4);
VALUE(L3_OK, 0);
VALUE(L3_ERROR_ARGUMENT, 1);
VALUE(L3_ERROR_NOT_L3, 2);
VALUE(L3_ERROR_UNSUPPORTED, 3);
VALUE(L3_ERROR_CORRUPT, 4);
VALUE(L3_ERROR_TRUNCATED, 5);
VALUE(L3_ERROR_LIMIT, 6);
VALUE(L3_ERROR_BUFFER, 7);
VALUE(L3_ERROR_MEMORY, 8);
VALUE(L3_ERROR_DEVICE, 9);
VALUE(L3_ERROR_MODEL, 10);
VALUE(L3_ERROR_FILE, 11);

SIZE(l3_data_kind, 4);
VALUE(L3_DATA_IMAGE, 0);
VALUE(L3_DATA_BYTES, 1);

SIZE(l3_cached, 4);
VALUE(L3_CACHED_NEVER, 0);
VALUE(L3_CACHED_NOT_YET, 1);
VALUE(L3_CACHED, 2);

SIZE(l3_box_kind, 4);
VALUE(L3_BOX_WHOLE, 0);
VALUE(L3_BOX_GIVEN, 1);
VALUE(L3_BOX_RANDOM, 2);

SIZE(l3_resize, 4);
VALUE(L3_RESIZE_NONE, 0);
VALUE(L3_RESIZE_EXACT, 1);
VALUE(L3_RESIZE_SHORTER, 2);
VALUE(L3_RESIZE_LONGEST, 3);

SIZE(l3_interpolation, 4);
VALUE(L3_INTERPOLATION_AUTO, 0);
VALUE(L3_INTERPOLATION_NEAREST, 1);
VALUE(L3_INTERPOLATION_NEAREST_EXACT, 2);
VALUE(L3_INTERPOLATION_BILINEAR, 3);
VALUE(L3_INTERPOLATION_BICUBIC, 4);
VALUE(L3_INTERPOLATION_AREA, 5);

SIZE(l3_pad, 4);
VALUE(L3_PAD_NONE, 0);
VALUE(L3_PAD_CENTRE, 1);
VALUE(L3_PAD_LETTERBOX, 2);

SIZE(l3_pad_mode, 4);
VALUE(L3_PAD_VALUE, 0);
VALUE(L3_PAD_EDGE, 1);
VALUE(L3_PAD_REFLECT, 2);

SIZE(l3_turn, 4);
VALUE(L3_TURN_NONE, 0);
VALUE(L3_TURN_90, 1);
VALUE(L3_TURN_180, 2);
VALUE(L3_TURN_270, 3);
VALUE(L3_TURN_RANDOM, 4);

SIZE(l3_batching, 4);
VALUE(L3_BATCHING_STACK, 0);
VALUE(L3_BATCHING_LIST, 1);
VALUE(L3_BATCHING_PAD, 2);

SIZE(l3_bucket, 4);
VALUE(L3_BUCKET_NONE, 0);
VALUE(L3_BUCKET_ASPECT, 1);

SIZE(l3_channels, 4);
VALUE(L3_CHANNELS_STORED, 0);
VALUE(L3_CHANNELS_GRAY, 1);
VALUE(L3_CHANNELS_RGB, 2);

SIZE(l3_transparency, 4);
VALUE(L3_TRANSPARENCY_KEEP, 0);
VALUE(L3_TRANSPARENCY_DROP, 1);
VALUE(L3_TRANSPARENCY_BLEND, 2);

SIZE(l3_order, 4);
VALUE(L3_ORDER_STORED, 0);
VALUE(L3_ORDER_SHUFFLED, 1);
VALUE(L3_ORDER_WINDOWS, 2);

SIZE(l3_last_batch, 4);
VALUE(L3_LAST_BATCH_EVEN, 0);
VALUE(L3_LAST_BATCH_PAD, 1);
VALUE(L3_LAST_BATCH_DROP, 2);
VALUE(L3_LAST_BATCH_UNEVEN, 3);

SIZE(l3_on_error, 4);
VALUE(L3_ON_ERROR_FAIL, 0);
VALUE(L3_ON_ERROR_SKIP, 1);
VALUE(L3_ON_ERROR_ZERO, 2);

SIZE(l3_delivery, 4);
VALUE(L3_DELIVERY_ORDERED, 0);
VALUE(L3_DELIVERY_ANY, 1);

SIZE(l3_crop, 4);
VALUE(L3_CROP_NONE, 0);
VALUE(L3_CROP_CENTRE, 1);
VALUE(L3_CROP_RANDOM, 2);

SIZE(l3_value_type, 4);
VALUE(L3_VALUE_STORED, 0);
VALUE(L3_VALUE_U8, 1);
VALUE(L3_VALUE_U16, 2);
VALUE(L3_VALUE_F16, 3);
VALUE(L3_VALUE_BF16, 4);
VALUE(L3_VALUE_F32, 5);
VALUE(L3_VALUE_I16, 6);
VALUE(L3_VALUE_I32, 7);
VALUE(L3_VALUE_I64, 8);

SIZE(l3_layout, 4);
VALUE(L3_LAYOUT_CHW, 0);
VALUE(L3_LAYOUT_HWC, 1);

SIZE(l3_reading, 4);
VALUE(L3_READING_AUTO, 0);
VALUE(L3_READING_URING, 1);
VALUE(L3_READING_THREADS, 2);

SIZE(l3_device_kind, 4);
VALUE(L3_DEVICE_CPU, 0);
VALUE(L3_DEVICE_CUDA, 1);

SIZE(l3_next, 4);
VALUE(L3_NEXT_BATCH, 0);
VALUE(L3_NEXT_END, 1);
VALUE(L3_NEXT_WAITING, 2);

SIZE(l3_sample_type, 4);
VALUE(L3_SAMPLE_U8, 0);
VALUE(L3_SAMPLE_U16, 1);

SIZE(l3_colour, 4);
VALUE(L3_COLOUR_GRAY, 0);
VALUE(L3_COLOUR_GRAY_ALPHA, 1);
VALUE(L3_COLOUR_RGB, 2);
VALUE(L3_COLOUR_RGB_ALPHA, 3);
VALUE(L3_COLOUR_PALETTE, 4);

SIZE(l3_alpha, 4);
VALUE(L3_ALPHA_NONE, 0);
VALUE(L3_ALPHA_STRAIGHT, 1);
VALUE(L3_ALPHA_PREMULTIPLIED, 2);

SIZE(l3_section_type, 4);
VALUE(L3_SECTION_PALETTE, 1);
VALUE(L3_SECTION_TRANSPARENCY, 2);
VALUE(L3_SECTION_COLOUR_SPACE, 3);
VALUE(L3_SECTION_ICC, 4);
VALUE(L3_SECTION_EXIF, 5);
VALUE(L3_SECTION_MODEL, 6);
VALUE(L3_SECTION_METADATA, 0x8001);

SIZE(l3_tile_method, 4);
VALUE(L3_TILE_CONSTANT, 0);
VALUE(L3_TILE_RAW, 1);
VALUE(L3_TILE_FAST, 2);
VALUE(L3_TILE_DENSE, 3);

SIZE(l3_model_origin, 4);
VALUE(L3_MODEL_NONE, 0);
VALUE(L3_MODEL_OWN, 1);
VALUE(L3_MODEL_NAMED, 2);
VALUE(L3_MODEL_DEFAULT, 3);

SIZE(l3_method, 4);
VALUE(L3_METHOD_AUTO, 0);
VALUE(L3_METHOD_FAST, 1);
VALUE(L3_METHOD_DENSE, 2);

#if UINTPTR_MAX == UINT64_MAX
#define PLACE(type, member, offset) \
  _Static_assert(offsetof(type, member) == (offset), #type "." #member " is at another place")

SIZE(l3_error, 32);
PLACE(l3_error, status, 0);
PLACE(l3_error, offset, 8);
PLACE(l3_error, tile, 16);
PLACE(l3_error, reason, 24);

SIZE(l3_range, 16);
PLACE(l3_range, offset, 0);
PLACE(l3_range, size, 8);

SIZE(l3_limits, 24);
PLACE(l3_limits, max_pixels, 0);
PLACE(l3_limits, max_output_bytes, 8);
PLACE(l3_limits, max_metadata_bytes, 16);

SIZE(l3_info, 128);
PLACE(l3_info, struct_size, 0);
PLACE(l3_info, version, 4);
PLACE(l3_info, required_features, 8);
PLACE(l3_info, optional_features, 12);
PLACE(l3_info, width, 16);
PLACE(l3_info, height, 20);
PLACE(l3_info, frames, 24);
PLACE(l3_info, channels, 28);
PLACE(l3_info, sample_type, 32);
PLACE(l3_info, bits, 36);
PLACE(l3_info, colour, 40);
PLACE(l3_info, alpha, 44);
PLACE(l3_info, tile_width, 48);
PLACE(l3_info, tile_height, 52);
PLACE(l3_info, tile_count, 56);
PLACE(l3_info, head_bytes, 64);
PLACE(l3_info, payload_start, 72);
PLACE(l3_info, image_bytes, 80);
PLACE(l3_info, digest, 88);
PLACE(l3_info, model_origin, 104);
PLACE(l3_info, default_model, 108);
PLACE(l3_info, model_name, 112);

SIZE(l3_parallel, 16);
PLACE(l3_parallel, run, 0);
PLACE(l3_parallel, context, 8);

SIZE(l3_sizes, 80);
PLACE(l3_sizes, struct_size, 0);
PLACE(l3_sizes, head, 8);
PLACE(l3_sizes, index, 16);
PLACE(l3_sizes, model, 24);
PLACE(l3_sizes, sections, 32);
PLACE(l3_sizes, payloads, 40);
PLACE(l3_sizes, dense_payloads, 48);
PLACE(l3_sizes, dense_states, 56);
PLACE(l3_sizes, dense_classes, 64);
PLACE(l3_sizes, dense_samples, 72);

SIZE(l3_decode_options, 64);
PLACE(l3_decode_options, struct_size, 0);
PLACE(l3_decode_options, as_colours, 4);
PLACE(l3_decode_options, limits, 8);
PLACE(l3_decode_options, parallel, 32);
PLACE(l3_decode_options, models, 48);
PLACE(l3_decode_options, model_count, 56);

SIZE(l3_image, 128);
PLACE(l3_image, struct_size, 0);
PLACE(l3_image, width, 4);
PLACE(l3_image, height, 8);
PLACE(l3_image, bits, 12);
PLACE(l3_image, colour, 16);
PLACE(l3_image, alpha, 20);
PLACE(l3_image, pixels, 24);
PLACE(l3_image, stride, 32);
PLACE(l3_image, palette, 40);
PLACE(l3_image, palette_entries, 48);
PLACE(l3_image, transparency, 56);
PLACE(l3_image, transparency_size, 64);
PLACE(l3_image, colour_space, 72);
PLACE(l3_image, icc, 80);
PLACE(l3_image, icc_size, 88);
PLACE(l3_image, exif, 96);
PLACE(l3_image, exif_size, 104);
PLACE(l3_image, metadata, 112);
PLACE(l3_image, metadata_size, 120);

SIZE(l3_encode_options, 72);
PLACE(l3_encode_options, struct_size, 0);
PLACE(l3_encode_options, method, 4);
PLACE(l3_encode_options, effort, 8);
PLACE(l3_encode_options, tile_width, 12);
PLACE(l3_encode_options, tile_height, 16);
PLACE(l3_encode_options, parallel, 24);
PLACE(l3_encode_options, model, 40);
PLACE(l3_encode_options, model_size, 48);
PLACE(l3_encode_options, named_model, 56);
PLACE(l3_encode_options, model_origin, 64);

SIZE(l3_model_info, 48);
PLACE(l3_model_info, struct_size, 0);
PLACE(l3_model_info, kind, 4);
PLACE(l3_model_info, channels, 8);
PLACE(l3_model_info, bits, 12);
PLACE(l3_model_info, name, 16);
PLACE(l3_model_info, bytes, 32);
PLACE(l3_model_info, size, 40);

SIZE(l3_train_options, 48);
PLACE(l3_train_options, struct_size, 0);
PLACE(l3_train_options, effort, 4);
PLACE(l3_train_options, tile_width, 8);
PLACE(l3_train_options, tile_height, 12);
PLACE(l3_train_options, max_pixels, 16);
PLACE(l3_train_options, parallel, 24);
PLACE(l3_train_options, complete, 40);

SIZE(l3_data_error, 768);
PLACE(l3_data_error, status, 0);
PLACE(l3_data_error, system_error, 4);
PLACE(l3_data_error, offset, 8);
PLACE(l3_data_error, file, 16);
PLACE(l3_data_error, reason, 528);

SIZE(l3_data_options, 56);
PLACE(l3_data_options, struct_size, 0);
PLACE(l3_data_options, max_open_files, 4);
PLACE(l3_data_options, max_index_bytes, 8);
PLACE(l3_data_options, max_json_bytes, 16);
PLACE(l3_data_options, timeout_ms, 24);
PLACE(l3_data_options, attempts, 28);
PLACE(l3_data_options, connections, 32);
PLACE(l3_data_options, hedge, 36);
PLACE(l3_data_options, certificates, 40);
PLACE(l3_data_options, cache, 48);

SIZE(l3_writer_options, 72);
PLACE(l3_writer_options, struct_size, 0);
PLACE(l3_writer_options, threads, 4);
PLACE(l3_writer_options, shard_bytes, 8);
PLACE(l3_writer_options, replace, 16);
PLACE(l3_writer_options, unverified, 20);
PLACE(l3_writer_options, method, 24);
PLACE(l3_writer_options, effort, 28);
PLACE(l3_writer_options, tile_width, 32);
PLACE(l3_writer_options, tile_height, 36);
PLACE(l3_writer_options, classes, 40);
PLACE(l3_writer_options, class_count, 48);
PLACE(l3_writer_options, models, 56);
PLACE(l3_writer_options, model_count, 64);

SIZE(l3_writer_sample, 56);
PLACE(l3_writer_sample, struct_size, 0);
PLACE(l3_writer_sample, label, 4);
PLACE(l3_writer_sample, class_name, 8);
PLACE(l3_writer_sample, name, 16);
PLACE(l3_writer_sample, role, 24);
PLACE(l3_writer_sample, group, 32);
PLACE(l3_writer_sample, metadata, 40);
PLACE(l3_writer_sample, metadata_size, 48);

SIZE(l3_data_cache_info, 864);
PLACE(l3_data_cache_info, struct_size, 0);
PLACE(l3_data_cache_info, places, 4);
PLACE(l3_data_cache_info, samples, 8);
PLACE(l3_data_cache_info, bytes, 16);
PLACE(l3_data_cache_info, hits, 24);
PLACE(l3_data_cache_info, hit_bytes, 32);
PLACE(l3_data_cache_info, misses, 40);
PLACE(l3_data_cache_info, miss_bytes, 48);
PLACE(l3_data_cache_info, others, 56);
PLACE(l3_data_cache_info, other_bytes, 64);
PLACE(l3_data_cache_info, kept, 72);
PLACE(l3_data_cache_info, damaged, 80);
PLACE(l3_data_cache_info, failures, 88);
PLACE(l3_data_cache_info, last_failure, 96);

SIZE(l3_store_request, 16);
PLACE(l3_store_request, owner, 0);
PLACE(l3_store_request, number, 8);

SIZE(l3_store, 48);
PLACE(l3_store, struct_size, 0);
PLACE(l3_store, is_near, 4);
PLACE(l3_store, context, 8);
PLACE(l3_store, size, 16);
PLACE(l3_store, read, 24);
PLACE(l3_store, cancel, 32);
PLACE(l3_store, release, 40);

SIZE(l3_data_info, 56);
PLACE(l3_data_info, struct_size, 0);
PLACE(l3_data_info, classes, 4);
PLACE(l3_data_info, shards, 8);
PLACE(l3_data_info, samples, 16);
PLACE(l3_data_info, groups, 24);
PLACE(l3_data_info, bytes, 32);
PLACE(l3_data_info, sample_bytes, 40);
PLACE(l3_data_info, index_bytes, 48);

SIZE(l3_data_sample, 160);
PLACE(l3_data_sample, struct_size, 0);
PLACE(l3_data_sample, kind, 4);
PLACE(l3_data_sample, name, 8);
PLACE(l3_data_sample, name_size, 16);
PLACE(l3_data_sample, role, 24);
PLACE(l3_data_sample, role_size, 32);
PLACE(l3_data_sample, size, 40);
PLACE(l3_data_sample, width, 48);
PLACE(l3_data_sample, height, 52);
PLACE(l3_data_sample, channels, 56);
PLACE(l3_data_sample, bits, 60);
PLACE(l3_data_sample, colour, 64);
PLACE(l3_data_sample, label, 68);
PLACE(l3_data_sample, group, 72);
PLACE(l3_data_sample, shard, 80);
PLACE(l3_data_sample, offset, 88);
PLACE(l3_data_sample, metadata, 96);
PLACE(l3_data_sample, metadata_size, 104);
PLACE(l3_data_sample, model, 112);
PLACE(l3_data_sample, model_bytes, 120);
PLACE(l3_data_sample, model_size, 128);
PLACE(l3_data_sample, check, 136);
PLACE(l3_data_sample, digest, 140);

SIZE(l3_tensor_options, 136);
PLACE(l3_tensor_options, role, 0);
PLACE(l3_tensor_options, role_size, 8);
PLACE(l3_tensor_options, type, 16);
PLACE(l3_tensor_options, layout, 20);
PLACE(l3_tensor_options, as_colours, 24);
PLACE(l3_tensor_options, reserved, 28);
PLACE(l3_tensor_options, scale, 32);
PLACE(l3_tensor_options, bias, 48);
PLACE(l3_tensor_options, interpolation, 64);
PLACE(l3_tensor_options, channels, 68);
PLACE(l3_tensor_options, alpha, 72);
PLACE(l3_tensor_options, bits, 76);
PLACE(l3_tensor_options, jitter, 80);
PLACE(l3_tensor_options, has_pad_value, 84);
PLACE(l3_tensor_options, pad_value, 88);
PLACE(l3_tensor_options, background, 104);
PLACE(l3_tensor_options, spare, 120);

SIZE(l3_loader_options, 264);
PLACE(l3_loader_options, struct_size, 0);
PLACE(l3_loader_options, batch_size, 4);
PLACE(l3_loader_options, seed, 8);
PLACE(l3_loader_options, rank, 16);
PLACE(l3_loader_options, world_size, 20);
PLACE(l3_loader_options, order, 24);
PLACE(l3_loader_options, window, 28);
PLACE(l3_loader_options, last_batch, 32);
PLACE(l3_loader_options, on_error, 36);
PLACE(l3_loader_options, crop, 40);
PLACE(l3_loader_options, crop_width, 44);
PLACE(l3_loader_options, crop_height, 48);
PLACE(l3_loader_options, flip, 52);
PLACE(l3_loader_options, tensors, 56);
PLACE(l3_loader_options, tensor_count, 64);
PLACE(l3_loader_options, device, 68);
PLACE(l3_loader_options, device_number, 72);
PLACE(l3_loader_options, threads, 76);
PLACE(l3_loader_options, prefetch, 80);
PLACE(l3_loader_options, reading, 84);
PLACE(l3_loader_options, max_bytes_in_flight, 88);
PLACE(l3_loader_options, groups, 96);
PLACE(l3_loader_options, group_count, 104);
PLACE(l3_loader_options, limits, 112);
PLACE(l3_loader_options, delivery, 136);
PLACE(l3_loader_options, share, 144);
PLACE(l3_loader_options, jobs, 152);
PLACE(l3_loader_options, share_timeout_ms, 156);
PLACE(l3_loader_options, orient, 160);
PLACE(l3_loader_options, box, 164);
PLACE(l3_loader_options, boxes, 168);
PLACE(l3_loader_options, box_count, 176);
PLACE(l3_loader_options, scale, 184);
PLACE(l3_loader_options, ratio, 192);
PLACE(l3_loader_options, resize, 200);
PLACE(l3_loader_options, resize_width, 204);
PLACE(l3_loader_options, resize_height, 208);
PLACE(l3_loader_options, pad, 212);
PLACE(l3_loader_options, pad_width, 216);
PLACE(l3_loader_options, pad_height, 220);
PLACE(l3_loader_options, pad_mode, 224);
PLACE(l3_loader_options, flip_vertical, 228);
PLACE(l3_loader_options, turn, 232);
PLACE(l3_loader_options, batching, 236);
PLACE(l3_loader_options, pad_multiple, 240);
PLACE(l3_loader_options, bucket_by, 244);
PLACE(l3_loader_options, brightness, 248);
PLACE(l3_loader_options, contrast, 252);
PLACE(l3_loader_options, saturation, 256);
PLACE(l3_loader_options, hue, 260);

SIZE(l3_tensor, 48);
PLACE(l3_tensor, data, 0);
PLACE(l3_tensor, type, 8);
PLACE(l3_tensor, dimensions, 12);
PLACE(l3_tensor, shape, 16);

SIZE(l3_loader_info, 64);
PLACE(l3_loader_info, struct_size, 0);
PLACE(l3_loader_info, tensors, 4);
PLACE(l3_loader_info, units, 8);
PLACE(l3_loader_info, batches, 16);
PLACE(l3_loader_info, threads, 24);
PLACE(l3_loader_info, reading, 28);
PLACE(l3_loader_info, from_other_jobs, 32);
PLACE(l3_loader_info, prepared_for_all, 40);
PLACE(l3_loader_info, prepared_alone, 48);
PLACE(l3_loader_info, jobs, 56);

SIZE(l3_box, 16);
PLACE(l3_box, x, 0);
PLACE(l3_box, y, 4);
PLACE(l3_box, width, 8);
PLACE(l3_box, height, 12);

SIZE(l3_explanation, 92);
PLACE(l3_explanation, struct_size, 0);
PLACE(l3_explanation, orientation, 4);
PLACE(l3_explanation, box, 8);
PLACE(l3_explanation, resized_width, 24);
PLACE(l3_explanation, resized_height, 28);
PLACE(l3_explanation, crop, 32);
PLACE(l3_explanation, left, 48);
PLACE(l3_explanation, top, 52);
PLACE(l3_explanation, width, 56);
PLACE(l3_explanation, height, 60);
PLACE(l3_explanation, flip, 64);
PLACE(l3_explanation, flip_vertical, 68);
PLACE(l3_explanation, turns, 72);
PLACE(l3_explanation, brightness, 76);
PLACE(l3_explanation, contrast, 80);
PLACE(l3_explanation, saturation, 84);
PLACE(l3_explanation, hue, 88);

SIZE(l3_failure, 784);
PLACE(l3_failure, epoch, 0);
PLACE(l3_failure, sample, 8);
PLACE(l3_failure, error, 16);

SIZE(l3_batch_times, 104);
PLACE(l3_batch_times, begun, 0);
PLACE(l3_batch_times, fetched, 8);
PLACE(l3_batch_times, copy_begun, 16);
PLACE(l3_batch_times, copied, 24);
PLACE(l3_batch_times, decode_begun, 32);
PLACE(l3_batch_times, decoded, 40);
PLACE(l3_batch_times, asked, 48);
PLACE(l3_batch_times, given, 56);
PLACE(l3_batch_times, reading, 64);
PLACE(l3_batch_times, decoding, 72);
PLACE(l3_batch_times, bytes_read, 80);
PLACE(l3_batch_times, bytes_out, 88);
PLACE(l3_batch_times, converting, 96);

SIZE(l3_request, 88);
PLACE(l3_request, batch, 0);
PLACE(l3_request, sample, 8);
PLACE(l3_request, offset, 16);
PLACE(l3_request, bytes, 24);
PLACE(l3_request, queued, 32);
PLACE(l3_request, sent, 40);
PLACE(l3_request, answered, 48);
PLACE(l3_request, finished, 56);
PLACE(l3_request, attempts, 64);
PLACE(l3_request, shared, 68);
PLACE(l3_request, hedged, 72);
PLACE(l3_request, failed, 76);
PLACE(l3_request, cached, 80);
PLACE(l3_request, reserved, 84);

SIZE(l3_batch_info, 216);
PLACE(l3_batch_info, struct_size, 0);
PLACE(l3_batch_info, units, 4);
PLACE(l3_batch_info, repeats, 8);
PLACE(l3_batch_info, failed, 12);
PLACE(l3_batch_info, epoch, 16);
PLACE(l3_batch_info, number, 24);
PLACE(l3_batch_info, position, 32);
PLACE(l3_batch_info, tensors, 40);
PLACE(l3_batch_info, ids, 48);
PLACE(l3_batch_info, labels, 56);
PLACE(l3_batch_info, device_labels, 64);
PLACE(l3_batch_info, times, 112);
#endif

int main(void) {
  return l3_info_init().struct_size == sizeof(l3_info) &&
                 l3_decode_options_init().struct_size == sizeof(l3_decode_options) &&
                 l3_sizes_init().struct_size == sizeof(l3_sizes) && l3_image_init().struct_size == sizeof(l3_image) &&
                 l3_encode_options_init().struct_size == sizeof(l3_encode_options) &&
                 l3_model_info_init().struct_size == sizeof(l3_model_info) &&
                 l3_train_options_init().struct_size == sizeof(l3_train_options) &&
                 l3_data_options_init().struct_size == sizeof(l3_data_options) &&
                 l3_data_info_init().struct_size == sizeof(l3_data_info) &&
                 l3_data_cache_info_init().struct_size == sizeof(l3_data_cache_info) &&
                 l3_data_sample_init().struct_size == sizeof(l3_data_sample) &&
                 l3_loader_options_init().struct_size == sizeof(l3_loader_options) &&
                 l3_loader_info_init().struct_size == sizeof(l3_loader_info) &&
                 l3_explanation_init().struct_size == sizeof(l3_explanation) &&
                 l3_batch_info_init().struct_size == sizeof(l3_batch_info)
             ? 0
             : 1;
}
