#include "textflag.h"

// func squares4(n int, x *[4]float64, a, b, c, d, out *float64)
TEXT ·squares4(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ x+8(FP), AX
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DI
	MOVQ c+32(FP), R8
	MOVQ d+40(FP), R9
	MOVQ out+48(FP), DX

	VBROADCASTSD (AX), Y0
	VBROADCASTSD 8(AX), Y1
	VBROADCASTSD 16(AX), Y2
	VBROADCASTSD 24(AX), Y3
	XORQ         BX, BX

loop:
	VSUBPD  (SI)(BX*8), Y0, Y4
	VSUBPD  (DI)(BX*8), Y1, Y5
	VSUBPD  (R8)(BX*8), Y2, Y6
	VSUBPD  (R9)(BX*8), Y3, Y7
	VMULPD  Y4, Y4, Y4
	VMULPD  Y5, Y5, Y5
	VMULPD  Y6, Y6, Y6
	VMULPD  Y7, Y7, Y7
	VADDPD  Y5, Y4, Y4
	VADDPD  Y7, Y6, Y6
	VADDPD  Y6, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func squares2(n int, x, y float64, a, b, out *float64)
TEXT ·squares2(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DI
	MOVQ out+40(FP), DX

	VBROADCASTSD x+8(FP), Y0
	VBROADCASTSD y+16(FP), Y1
	XORQ         BX, BX

loop:
	VSUBPD  (SI)(BX*8), Y0, Y4
	VSUBPD  (DI)(BX*8), Y1, Y5
	VMULPD  Y4, Y4, Y4
	VMULPD  Y5, Y5, Y5
	VADDPD  Y5, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func products2(n int, x, y float64, a, b, out *float64)
TEXT ·products2(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), CX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DI
	MOVQ out+40(FP), DX

	VBROADCASTSD x+8(FP), Y0
	VBROADCASTSD y+16(FP), Y1
	XORQ         BX, BX

loop:
	VMULPD  (SI)(BX*8), Y0, Y4
	VMULPD  (DI)(BX*8), Y1, Y5
	VADDPD  Y5, Y4, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func quadratic(n int, weight float64, t, out *float64)
TEXT ·quadratic(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ t+16(FP), SI
	MOVQ out+24(FP), DX

	VBROADCASTSD weight+8(FP), Y0
	MOVQ         $0x4000000000000000, AX // 2
	MOVQ         AX, X1
	VMOVDDUP     X1, X1
	VINSERTF128  $1, X1, Y1, Y1
	XORQ         BX, BX

loop:
	VMOVUPD (SI)(BX*8), Y4
	VADDPD  Y1, Y4, Y5
	VMULPD  Y5, Y4, Y4
	VMULPD  Y4, Y0, Y4
	VADDPD  (DX)(BX*8), Y4, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func scale(n int, x float64, out *float64)
TEXT ·scale(SB), NOSPLIT, $0-24
	MOVQ n+0(FP), CX
	MOVQ out+16(FP), DX

	VBROADCASTSD x+8(FP), Y0
	XORQ         BX, BX

loop:
	VMULPD  (DX)(BX*8), Y0, Y4
	VMOVUPD Y4, (DX)(BX*8)
	ADDQ    $4, BX
	CMPQ    BX, CX
	JLT     loop
	VZEROUPPER
	RET

// func pairSums(n int, pairs, a, b, c, d *float64, sums *[8]float64)
TEXT ·pairSums(SB), NOSPLIT, $0-56
	MOVQ n+0(FP), CX
	MOVQ pairs+8(FP), AX
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DI
	MOVQ c+32(FP), R8
	MOVQ d+40(FP), R9
	MOVQ sums+48(FP), DX

	VXORPD X0, X0, X0
	VXORPD X1, X1, X1
	VXORPD X2, X2, X2
	VXORPD X3, X3, X3
	XORQ   BX, BX

loop:
	VMOVUPD  (AX), X4
	VMOVDDUP (SI)(BX*8), X5
	VMOVDDUP (DI)(BX*8), X6
	VMOVDDUP (R8)(BX*8), X7
	VMOVDDUP (R9)(BX*8), X8
	VMULPD   X4, X5, X5
	VMULPD   X4, X6, X6
	VMULPD   X4, X7, X7
	VMULPD   X4, X8, X8
	VADDPD   X5, X0, X0
	VADDPD   X6, X1, X1
	VADDPD   X7, X2, X2
	VADDPD   X8, X3, X3
	ADDQ     $16, AX
	INCQ     BX
	CMPQ     BX, CX
	JLT      loop

	VMOVUPD X0, (DX)
	VMOVUPD X1, 16(DX)
	VMOVUPD X2, 32(DX)
	VMOVUPD X3, 48(DX)
	RET

// One column: A holds the sums, X the queries' coordinates, Y8 the weights.
#define SQUARES(Y, X, A) \
	VBROADCASTSD Y, Y9       \
	VSUBPD       Y9, X, Y9   \
	VMULPD       Y9, Y8, Y10 \
	VMULPD       Y9, Y10, Y10 \
	VADDPD       Y10, A, A

// func weightedSquares(n int, weights *float64, x *[16]float64, a, b, c, d *float64, sums *[16]float64)
TEXT ·weightedSquares(SB), NOSPLIT, $0-64
	MOVQ n+0(FP), CX
	MOVQ weights+8(FP), AX
	MOVQ x+16(FP), DX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DI
	MOVQ c+40(FP), R8
	MOVQ d+48(FP), R9

	VMOVUPD (DX), Y4
	VMOVUPD 32(DX), Y5
	VMOVUPD 64(DX), Y6
	VMOVUPD 96(DX), Y7
	VXORPD  Y0, Y0, Y0
	VXORPD  Y1, Y1, Y1
	VXORPD  Y2, Y2, Y2
	VXORPD  Y3, Y3, Y3
	MOVQ    sums+56(FP), DX
	XORQ    BX, BX

loop:
	VMOVUPD (AX), Y8
	SQUARES((SI)(BX*8), Y4, Y0)
	SQUARES((DI)(BX*8), Y5, Y1)
	SQUARES((R8)(BX*8), Y6, Y2)
	SQUARES((R9)(BX*8), Y7, Y3)
	ADDQ    $32, AX
	INCQ    BX
	CMPQ    BX, CX
	JLT     loop

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, 64(DX)
	VMOVUPD Y3, 96(DX)
	VZEROUPPER
	RET

// Four columns of four rows, transposed: from (AX), (R11), (R12), (R13) at OFF
// to A, B, C, D, each the column of all rows.
#define TURN(OFF, A, B, C, D) \
	VMOVUPD    OFF(AX), Y12       \
	VMOVUPD    OFF(R11), Y13      \
	VMOVUPD    OFF(R12), Y14      \
	VMOVUPD    OFF(R13), Y15      \
	VUNPCKLPD  Y13, Y12, Y8       \
	VUNPCKHPD  Y13, Y12, Y9       \
	VUNPCKLPD  Y15, Y14, Y10      \
	VUNPCKHPD  Y15, Y14, Y11      \
	VPERM2F128 $0x20, Y10, Y8, A  \
	VPERM2F128 $0x20, Y11, Y9, B  \
	VPERM2F128 $0x31, Y10, Y8, C  \
	VPERM2F128 $0x31, Y11, Y9, D

// The same back.
#define BACK(OFF, A, B, C, D) \
	VUNPCKLPD  B, A, Y8           \
	VUNPCKHPD  B, A, Y9           \
	VUNPCKLPD  D, C, Y10          \
	VUNPCKHPD  D, C, Y11          \
	VPERM2F128 $0x20, Y10, Y8, Y12 \
	VPERM2F128 $0x20, Y11, Y9, Y13 \
	VPERM2F128 $0x31, Y10, Y8, Y14 \
	VPERM2F128 $0x31, Y11, Y9, Y15 \
	VMOVUPD    Y12, OFF(AX)       \
	VMOVUPD    Y13, OFF(R11)      \
	VMOVUPD    Y14, OFF(R12)      \
	VMOVUPD    Y15, OFF(R13)

// X += Y times the element of l at OFF.
#define STEP(OFF, Y, X) \
	VBROADCASTSD OFF(SI), Y8 \
	VMULPD       Y8, Y, Y8   \
	VADDPD       Y8, X, X

// X = -X divided by the diagonal element at OFF; then the next row of l.
#define DIVIDE(OFF, X) \
	VBROADCASTSD OFF(SI), Y8 \
	VXORPD       Y9, X, X    \
	VDIVPD       Y8, X, X    \
	ADDQ         R8, SI

// func solve4(l *float64, step int, x *float64)
TEXT ·solve4(SB), NOSPLIT, $0-24
	MOVQ l+0(FP), SI
	MOVQ step+8(FP), R8
	MOVQ x+16(FP), AX

	LEAQ (AX)(R8*1), R11
	LEAQ (AX)(R8*2), R12
	LEAQ (R11)(R8*2), R13
	TURN(0, Y0, Y1, Y2, Y3)
	TURN(32, Y4, Y5, Y6, Y7)

	MOVQ        $0x8000000000000000, BX
	MOVQ        BX, X9
	VMOVDDUP    X9, X9
	VINSERTF128 $1, X9, Y9, Y9

	DIVIDE(0, Y0)
	STEP(0, Y0, Y1)
	DIVIDE(8, Y1)
	STEP(0, Y0, Y2)
	STEP(8, Y1, Y2)
	DIVIDE(16, Y2)
	STEP(0, Y0, Y3)
	STEP(8, Y1, Y3)
	STEP(16, Y2, Y3)
	DIVIDE(24, Y3)
	STEP(0, Y0, Y4)
	STEP(8, Y1, Y4)
	STEP(16, Y2, Y4)
	STEP(24, Y3, Y4)
	DIVIDE(32, Y4)
	STEP(0, Y0, Y5)
	STEP(8, Y1, Y5)
	STEP(16, Y2, Y5)
	STEP(24, Y3, Y5)
	STEP(32, Y4, Y5)
	DIVIDE(40, Y5)
	STEP(0, Y0, Y6)
	STEP(8, Y1, Y6)
	STEP(16, Y2, Y6)
	STEP(24, Y3, Y6)
	STEP(32, Y4, Y6)
	STEP(40, Y5, Y6)
	DIVIDE(48, Y6)
	STEP(0, Y0, Y7)
	STEP(8, Y1, Y7)
	STEP(16, Y2, Y7)
	STEP(24, Y3, Y7)
	STEP(32, Y4, Y7)
	STEP(40, Y5, Y7)
	STEP(48, Y6, Y7)
	DIVIDE(56, Y7)

	BACK(0, Y0, Y1, Y2, Y3)
	BACK(32, Y4, Y5, Y6, Y7)
	VZEROUPPER
	RET
