// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Test wrapper: word packers of several shapes side by side, so that one build tests them all.
///
/// The bench reads the shape of packer n from `lanes_o` and `in_words_o`. All ports are padded to
/// 16 words.
module hotline_word_packer_wrap #(
  localparam int unsigned Packers = 7
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           flush_i,

  input  logic [Packers-1:0]             in_valid_i,
  output logic [Packers-1:0]             in_ready_o,
  input  logic [Packers-1:0][4:0]        in_count_i,
  input  logic [Packers-1:0][15:0][31:0] in_data_i,
  input  logic [Packers-1:0]             in_last_i,

  output logic [Packers-1:0]             out_valid_o,
  input  logic [Packers-1:0]             out_ready_i,
  output logic [Packers-1:0][15:0][31:0] out_data_o,
  output logic [Packers-1:0][4:0]        out_words_o,
  output logic [Packers-1:0]             out_last_o,

  output logic [Packers-1:0][4:0]        lanes_o,
  output logic [Packers-1:0][4:0]        in_words_o
);

  localparam int unsigned Lanes[Packers]   = '{2, 2, 16, 16, 16, 4, 1};
  localparam int unsigned InWords[Packers] = '{1, 2, 1, 4, 16, 3, 1};

  for (genvar p = 0; p < int'(Packers); p++) begin : gen_packer
    logic [Lanes[p]-1:0][31:0]        data;
    logic [$clog2(Lanes[p]+1)-1:0]    words;

    hotline_word_packer #(
      .Lanes  (Lanes[p]),
      .InWords(InWords[p])
    ) u_packer (
      .clk_i,
      .rst_ni,
      .flush_i,
      .in_valid_i (in_valid_i[p]),
      .in_ready_o (in_ready_o[p]),
      .in_count_i (in_count_i[p][$clog2(InWords[p]+1)-1:0]),
      .in_data_i  (in_data_i[p][InWords[p]-1:0]),
      .in_last_i  (in_last_i[p]),
      .out_valid_o(out_valid_o[p]),
      .out_ready_i(out_ready_i[p]),
      .out_data_o (data),
      .out_words_o(words),
      .out_last_o (out_last_o[p])
    );

    assign out_data_o[p]  = {{(16 - Lanes[p]) * 32{1'b0}}, data};
    assign out_words_o[p] = 5'(words);
    assign lanes_o[p]     = 5'(Lanes[p]);
    assign in_words_o[p]  = 5'(InWords[p]);
  end

endmodule
