#ifndef STAX_BLUR_H
#define STAX_BLUR_H
#include <stdint.h>

/* both(img: uint16[d0, d1]) -> both: uint16[max(2, img.shape[0]) - 2, max(2, img.shape[1]) - 2]

   Made by stax for x86-64-v3 (x86_64-unknown-linux-gnu); it needs nothing of stax.

   Extents are in elements, strides in bytes; null strides are those of a dense array in C order. Strides
   may be any, but for the last dimension, which steps by one element, and for those of what is written,
   which are in C order. Arrays are aligned to their elements, and what is written overlaps nothing else.
   All this is checked: the result is 0, or a code. `threads`: how many may run, the caller being one.

   Codes:
      1  out of memory
     -1  `img` is a null pointer
     -2  the shape of `img` is a null pointer
     -3  an extent of `img` is negative or too large
     -4  `both` is a null pointer
     -5  the shape of `both` is a null pointer
     -6  an extent of `both` is negative or too large
     -7  `rows` reads `img` at 0 to both.shape[0] + 1 of its dimension 0, which has img.shape[0] elements
     -8  `rows` reads `img` at 0 to both.shape[1] - 1 of its dimension 1, which has img.shape[1] elements
     -9  `rows` reads `img` at 1 to both.shape[1] of its dimension 1, which has img.shape[1] elements
    -10  `rows` reads `img` at 2 to both.shape[1] + 1 of its dimension 1, which has img.shape[1] elements
    -11  a size does not fit into 64 bits
    -12  the last dimension of `img` must step by one element
    -13  `img` must be aligned to its elements, in strides too
    -14  the last dimension of `both` must step by one element
    -15  `both` must be aligned to its elements, in strides too
    -16  elements of `both` must not overlap, in C order
    -17  `both` and `img` overlap in memory */

#ifdef __cplusplus
extern "C" {
#endif

int32_t blur(
    const uint16_t *img, const int64_t img_shape[2], const int64_t img_strides[2],
    uint16_t *both, const int64_t both_shape[2], const int64_t both_strides[2],
    int32_t threads);

/* Fills the shapes that the inputs serve; an extent that nothing says is left as it is. */
int32_t blur_shape(
    const int64_t img_shape[2],
    int64_t both_shape[2]);

/* What a code means; the text is never freed. */
const char *blur_message(int32_t code);

#ifdef __cplusplus
}
#endif
#endif
