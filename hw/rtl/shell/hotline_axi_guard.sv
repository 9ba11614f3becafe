// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Stands between a kernel and its AXI port: knows the address behind every response.
///
/// AXI gives no address with read data and write responses. All bursts have id 0, so responses come
/// in the order of the requests; the guard keeps the addresses of outstanding bursts in two FIFOs
/// and hands them back: `in_r_addr_o` is the address of each beat, `in_b_addr_o` that of the burst.
///
///   in_ar --+--> [spill] ------> m_ar         m_r --+--> [spill] --> in_r (+ addr)
///           +--> [addresses: ReadOutstanding] ------+
///   in_aw --+--> [spill] ------> m_aw         m_b --+--> [spill] --> in_b (+ addr, user)
///           +--> [addresses, user: WriteOutstanding] +
///   in_w  -----> [spill] --gate-> m_w
///
/// The first error response since `note_clear_i` is kept for cores that do not look at responses
/// (HLS code). Writes with `user` set (completion records) are not noted.
///
/// Throughput  1 transfer per cycle and channel, single-beat bursts included.
/// Latency     1 cycle per channel.
/// Stalls      `in_ar_ready_o` and `in_aw_ready_o` are low while as many bursts are outstanding as
///             the parameters allow.
/// Errors      Passed on, and noted. A response to no burst (left over from before a reset of this
///             kernel alone) is swallowed, so that it cannot be taken for another's.
/// Order       Data of a burst enter behind its address (hotline_axi_mux sees to that); they are not
///             offered to the memory before the address is, but do not wait for its acceptance.
/// Reset       Forgets all bursts; the memory side must be reset with it or be quiet.
module hotline_axi_guard #(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits = 64,
  /// Read bursts outstanding, at most (1 to 256).
  parameter int unsigned ReadOutstanding = 16,
  /// Write bursts outstanding, at most (1 to 256).
  parameter int unsigned WriteOutstanding = 16,
  localparam int unsigned StrbBits = BusBits / 8,
  localparam int unsigned ReadCountBits = $clog2(ReadOutstanding + 1),
  localparam int unsigned WriteCountBits = $clog2(WriteOutstanding + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Towards the core.
  input  logic                      in_ar_valid_i,
  output logic                      in_ar_ready_o,
  input  logic [63:0]               in_ar_addr_i,
  input  logic [7:0]                in_ar_len_i,
  output logic                      in_r_valid_o,
  input  logic                      in_r_ready_i,
  output logic [BusBits-1:0]        in_r_data_o,
  output logic [1:0]                in_r_resp_o,
  output logic                      in_r_last_o,
  output logic [63:0]               in_r_addr_o,
  input  logic                      in_aw_valid_i,
  output logic                      in_aw_ready_o,
  input  logic [63:0]               in_aw_addr_i,
  input  logic [7:0]                in_aw_len_i,
  input  logic                      in_aw_user_i,
  input  logic                      in_w_valid_i,
  output logic                      in_w_ready_o,
  input  logic [BusBits-1:0]        in_w_data_i,
  input  logic [StrbBits-1:0]       in_w_strb_i,
  input  logic                      in_w_last_i,
  output logic                      in_b_valid_o,
  input  logic                      in_b_ready_i,
  output logic [1:0]                in_b_resp_o,
  output logic [63:0]               in_b_addr_o,
  output logic                      in_b_user_o,

  // Towards the memory.
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  output logic [63:0]               m_ar_addr_o,
  output logic [7:0]                m_ar_len_o,
  input  logic                      m_r_valid_i,
  output logic                      m_r_ready_o,
  input  logic [BusBits-1:0]        m_r_data_i,
  input  logic [1:0]                m_r_resp_i,
  input  logic                      m_r_last_i,
  output logic                      m_aw_valid_o,
  input  logic                      m_aw_ready_i,
  output logic [63:0]               m_aw_addr_o,
  output logic [7:0]                m_aw_len_o,
  output logic                      m_w_valid_o,
  input  logic                      m_w_ready_i,
  output logic [BusBits-1:0]        m_w_data_o,
  output logic [StrbBits-1:0]       m_w_strb_o,
  output logic                      m_w_last_o,
  input  logic                      m_b_valid_i,
  output logic                      m_b_ready_o,
  input  logic [1:0]                m_b_resp_i,

  /// Bursts outstanding.
  output logic [ReadCountBits-1:0]  reads_in_flight_o,
  output logic [WriteCountBits-1:0] writes_in_flight_o,

  /// First error since `note_clear_i` (which an error in the same cycle survives).
  input  logic                      note_clear_i,
  output logic                      note_valid_o,
  output logic                      note_write_o,
  output logic [63:0]               note_addr_o
);

  if (BusBits != 64 && BusBits != 128 && BusBits != 256 && BusBits != 512) begin : gen_bad_bus
    $fatal(1, "%m: BusBits must be 64, 128, 256 or 512");
  end
  if (ReadOutstanding < 1 || ReadOutstanding > 256 ||
      WriteOutstanding < 1 || WriteOutstanding > 256) begin : gen_bad_depth
    $fatal(1, "%m: ReadOutstanding and WriteOutstanding must be 1 to 256");
  end

  // ---------------------------------------------------------------------------------------- reads

  logic        ar_spill_ready;
  logic        ar_known_ready;
  logic        read_valid;
  logic [63:0] read_addr;
  logic        read_pop;
  logic        r_spill_ready;
  logic        r_transfer;
  logic        r_known;
  // Bytes of the current burst that have arrived. A burst stays within 4 KiB, so 12 bits do.
  logic [11:0] read_offset_q;
  logic [63:0] beat_addr;

  assign in_ar_ready_o = ar_spill_ready && ar_known_ready;

  hotline_spill_register #(
    .Width(64 + 8)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_ar_valid_i && ar_known_ready),
    .in_ready_o (ar_spill_ready),
    .in_data_i  ({in_ar_addr_i, in_ar_len_i}),
    .out_valid_o(m_ar_valid_o),
    .out_ready_i(m_ar_ready_i),
    .out_data_o ({m_ar_addr_o, m_ar_len_o})
  );

  hotline_stream_fifo #(
    .Width(64),
    .Depth(ReadOutstanding)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (in_ar_valid_i && ar_spill_ready),
    .in_ready_o (ar_known_ready),
    .in_data_i  (in_ar_addr_i),
    .out_valid_o(read_valid),
    .out_ready_i(read_pop),
    .out_data_o (read_addr),
    .count_o    (reads_in_flight_o)
  );

  // A beat without an address is dropped. The address of a burst is there before its first beat can
  // be: two cycles after the burst was taken, one of which the request spends in its spill register.
  assign m_r_ready_o = r_spill_ready;
  assign r_transfer  = m_r_valid_i && m_r_ready_o;
  assign r_known     = r_transfer && read_valid;
  assign read_pop    = r_known && m_r_last_i;
  assign beat_addr   = {read_addr[63:12], read_addr[11:0] + read_offset_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_offset_q <= '0;
    end else if (r_known) begin
      read_offset_q <= m_r_last_i ? '0 : read_offset_q + 12'(StrbBits);
    end
  end

  hotline_spill_register #(
    .Width(BusBits + 2 + 1 + 64)
  ) u_r (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_r_valid_i && read_valid),
    .in_ready_o (r_spill_ready),
    .in_data_i  ({m_r_data_i, m_r_resp_i, m_r_last_i, beat_addr}),
    .out_valid_o(in_r_valid_o),
    .out_ready_i(in_r_ready_i),
    .out_data_o ({in_r_data_o, in_r_resp_o, in_r_last_o, in_r_addr_o})
  );

  // --------------------------------------------------------------------------------------- writes

  logic        aw_spill_ready;
  logic        aw_known_ready;
  logic        write_valid;
  logic [63:0] write_addr;
  logic        write_user;
  logic        b_spill_ready;
  logic        b_known;
  logic        w_spill_valid;
  logic        w_gate;
  // Addresses accepted minus bursts whose data are through; -1: the data were faster.
  logic signed [WriteCountBits+1:0] lead_q;
  logic signed [WriteCountBits+1:0] lead_d;

  assign in_aw_ready_o = aw_spill_ready && aw_known_ready;

  hotline_spill_register #(
    .Width(64 + 8)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_aw_valid_i && aw_known_ready),
    .in_ready_o (aw_spill_ready),
    .in_data_i  ({in_aw_addr_i, in_aw_len_i}),
    .out_valid_o(m_aw_valid_o),
    .out_ready_i(m_aw_ready_i),
    .out_data_o ({m_aw_addr_o, m_aw_len_o})
  );

  hotline_stream_fifo #(
    .Width(64 + 1),
    .Depth(WriteOutstanding)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (in_aw_valid_i && aw_spill_ready),
    .in_ready_o (aw_known_ready),
    .in_data_i  ({in_aw_addr_i, in_aw_user_i}),
    .out_valid_o(write_valid),
    .out_ready_i(b_known),
    .out_data_o ({write_addr, write_user}),
    .count_o    (writes_in_flight_o)
  );

  hotline_spill_register #(
    .Width(BusBits + StrbBits + 1)
  ) u_w (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_w_valid_i),
    .in_ready_o (in_w_ready_o),
    .in_data_i  ({in_w_data_i, in_w_strb_i, in_w_last_i}),
    .out_valid_o(w_spill_valid),
    .out_ready_i(m_w_ready_i && w_gate),
    .out_data_o ({m_w_data_o, m_w_strb_o, m_w_last_o})
  );

  // A memory may take an address only with its data, so the gate must not wait for the acceptance.
  assign w_gate      = lead_q > 0 || (lead_q == 0 && m_aw_valid_o);
  assign m_w_valid_o = w_spill_valid && w_gate;

  always_comb begin
    lead_d = lead_q;
    if (m_aw_valid_o && m_aw_ready_i) lead_d = lead_d + 1;
    if (m_w_valid_o && m_w_ready_i && m_w_last_o) lead_d = lead_d - 1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lead_q <= '0;
    end else begin
      lead_q <= lead_d;
    end
  end

  assign m_b_ready_o = b_spill_ready;
  assign b_known     = m_b_valid_i && m_b_ready_o && write_valid;

  hotline_spill_register #(
    .Width(2 + 64 + 1)
  ) u_b (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_b_valid_i && write_valid),
    .in_ready_o (b_spill_ready),
    .in_data_i  ({m_b_resp_i, write_addr, write_user}),
    .out_valid_o(in_b_valid_o),
    .out_ready_i(in_b_ready_i),
    .out_data_o ({in_b_resp_o, in_b_addr_o, in_b_user_o})
  );

  // ----------------------------------------------------------------------------------------- note

  logic        note_valid_q;
  logic        note_write_q;
  logic [63:0] note_addr_q;
  logic        read_error;
  logic        write_error;
  logic        note_take;

  // Noted where the core takes the response: then the job that caused it has not been reported.
  assign read_error  = in_r_valid_o && in_r_ready_i && in_r_resp_o[1];
  assign write_error = in_b_valid_o && in_b_ready_i && in_b_resp_o[1] && !in_b_user_o;
  assign note_take   = (read_error || write_error) && (note_clear_i || !note_valid_q);

  assign note_valid_o = note_valid_q;
  assign note_write_o = note_write_q;
  assign note_addr_o  = note_addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      note_valid_q <= 1'b0;
    end else if (note_take) begin
      note_valid_q <= 1'b1;
    end else if (note_clear_i) begin
      note_valid_q <= 1'b0;
    end
  end

  // Not reset: qualified by the valid bit.
  always_ff @(posedge clk_i) begin
    if (note_take) begin
      note_write_q <= !read_error;
      note_addr_q  <= read_error ? in_r_addr_o : in_b_addr_o;
    end
  end

`ifndef SYNTHESIS
  localparam int unsigned SizeBits = $clog2(StrbBits);

  /// Whether a burst stays within its 4 KiB page and starts at a beat.
  function automatic logic legal(input logic [11:0] addr, input logic [7:0] len);
    return addr[SizeBits-1:0] == '0 && 32'(addr) + (32'(len) + 32'd1) * StrbBits <= 32'd4096;
  endfunction

  a_ar_legal : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_ar_valid_i |-> legal(in_ar_addr_i[11:0], in_ar_len_i));
  a_aw_legal : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_aw_valid_i |-> legal(in_aw_addr_i[11:0], in_aw_len_i));
  a_r_has_address : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_r_valid_i && reads_in_flight_o != '0 |-> read_valid);
  a_b_has_address : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_b_valid_i && writes_in_flight_o != '0 |-> write_valid);
  a_ar_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_ar_valid_i && !in_ar_ready_o |=>
      in_ar_valid_i && $stable({in_ar_addr_i, in_ar_len_i}));
  a_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_aw_valid_i && !in_aw_ready_o |=>
      in_aw_valid_i && $stable({in_aw_addr_i, in_aw_len_i, in_aw_user_i}));
`endif

endmodule
