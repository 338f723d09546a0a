/* A program in C that writes a data set and reads it back: what writer_test.cpp calls. */
#ifndef L3_TESTS_WRITE_SET_H
#define L3_TESTS_WRITE_SET_H

#include "l3/l3_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kImages = 20, kSide = 24 }; /* after the images come a group of two images, and a text */

/* Fills kSide * kSide RGB pixels. */
void write_set_pixels(unsigned number, unsigned char* pixels);
/* Both return L3_OK or the first error. Reading compares everything with what was written. */
l3_status write_set(const char* folder, unsigned threads, l3_data_error* error);
l3_status read_set(const char* folder, l3_data_error* error);

#ifdef __cplusplus
}
#endif
#endif
