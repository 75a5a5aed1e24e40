#include "textflag.h"

// func matern52x4(n int, table *maternTable, roots *[64]float64, r2, slopes *float64)
TEXT ·matern52x4(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), BX
	MOVQ table+8(FP), DI
	MOVQ roots+16(FP), R10
	MOVQ r2+24(FP), SI
	MOVQ slopes+32(FP), DX

	VBROADCASTSD (DI), Y15    // the root of 5
	VBROADCASTSD 8(DI), Y14   // the largest
	VBROADCASTSD 16(DI), Y13  // -perStep
	VBROADCASTSD 24(DI), Y12  // round
	VBROADCASTSD 32(DI), Y11  // high
	VBROADCASTSD 40(DI), Y10  // low
	VBROADCASTSD 80(DI), Y9   // 1
	VBROADCASTSD 104(DI), Y8  // the sign
	VMOVDDUP     112(DI), X7  // 1023*64, a whole number

loop:
	VSQRTPD (SI), Y0
	VMULPD  Y15, Y0, Y0
	VMINPD  Y0, Y14, Y0 // r; of two, the one that is no number
	VMULPD  Y13, Y0, Y1
	VADDPD  Y12, Y1, Y1 // shifted
	VSUBPD  Y12, Y1, Y2 // whole
	VXORPD  Y8, Y0, Y3
	VMULPD  Y11, Y2, Y4
	VSUBPD  Y4, Y3, Y3
	VMULPD  Y10, Y2, Y4
	VSUBPD  Y4, Y3, Y3 // t
	VMULPD  Y3, Y3, Y2 // its square

	VBROADCASTSD 64(DI), Y4
	VMULPD       Y3, Y4, Y4
	VBROADCASTSD 72(DI), Y5
	VADDPD       Y4, Y5, Y4
	VMULPD       Y2, Y4, Y4
	VBROADCASTSD 48(DI), Y5
	VMULPD       Y3, Y5, Y5
	VBROADCASTSD 56(DI), Y6
	VADDPD       Y5, Y6, Y5
	VADDPD       Y4, Y5, Y4
	VMULPD       Y2, Y4, Y4
	VADDPD       Y3, Y9, Y3
	VADDPD       Y4, Y3, Y3 // exp(t)

	VEXTRACTF128 $1, Y1, X2
	VMOVQ        X1, AX
	VPEXTRQ      $1, X1, CX
	VMOVQ        X2, R8
	VPEXTRQ      $1, X2, R9
	ANDQ         $63, AX
	ANDQ         $63, CX
	ANDQ         $63, R8
	ANDQ         $63, R9
	VMOVSD       (R10)(AX*8), X4
	VMOVHPD      (R10)(CX*8), X4, X4
	VMOVSD       (R10)(R8*8), X5
	VMOVHPD      (R10)(R9*8), X5, X5
	VINSERTF128  $1, X5, Y4, Y4
	VMULPD       Y4, Y3, Y3
	VPADDQ       X7, X1, X1
	VPADDQ       X7, X2, X2
	VPSRLQ       $6, X1, X1
	VPSRLQ       $6, X2, X2
	VPSLLQ       $52, X1, X1
	VPSLLQ       $52, X2, X2
	VINSERTF128  $1, X2, Y1, Y1
	VMULPD       Y1, Y3, Y3 // exp(-r)

	VADDPD       Y0, Y9, Y2
	VMULPD       Y0, Y0, Y4
	VBROADCASTSD 88(DI), Y5
	VMULPD       Y5, Y4, Y4
	VADDPD       Y4, Y2, Y4
	VMULPD       Y3, Y4, Y4
	VMOVUPD      Y4, (SI)
	ADDQ         $32, SI
	TESTQ        DX, DX
	JZ           next
	VBROADCASTSD 96(DI), Y5
	VMULPD       Y2, Y5, Y5
	VMULPD       Y3, Y5, Y5
	VMOVUPD      Y5, (DX)
	ADDQ         $32, DX

next:
	SUBQ $4, BX
	JG   loop
	VZEROUPPER
	RET
