// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_axi_guard`: every response comes with the address of its burst, whatever else comes is
/// swallowed, bursts in flight are bounded, data are not offered before their address, and the
/// first error is noted.
///
/// Any one read burst and any one write burst are followed: `pick_read_i`, `pick_write_i`.
module hotline_axi_guard_props #(
  parameter int unsigned Outstanding = 3
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        in_ar_valid_i,
  input logic [63:0] in_ar_addr_i,
  input logic [7:0]  in_ar_len_i,
  input logic        in_r_ready_i,
  input logic        in_aw_valid_i,
  input logic [63:0] in_aw_addr_i,
  input logic [7:0]  in_aw_len_i,
  input logic        in_aw_user_i,
  input logic        in_w_valid_i,
  input logic [63:0] in_w_data_i,
  input logic [7:0]  in_w_strb_i,
  input logic        in_w_last_i,
  input logic        in_b_ready_i,
  input logic        m_ar_ready_i,
  input logic        m_r_valid_i,
  input logic [63:0] m_r_data_i,
  input logic [1:0]  m_r_resp_i,
  input logic        m_r_last_i,
  input logic        m_aw_ready_i,
  input logic        m_w_ready_i,
  input logic        m_b_valid_i,
  input logic [1:0]  m_b_resp_i,
  input logic        note_clear_i,
  input logic        pick_read_i,
  input logic        pick_write_i
);

  localparam int unsigned CountWidth = $clog2(Outstanding + 1);

  logic                  in_ar_ready;
  logic                  in_r_valid;
  logic [63:0]           in_r_data;
  logic [1:0]            in_r_resp;
  logic                  in_r_last;
  logic [63:0]           in_r_addr;
  logic                  in_aw_ready;
  logic                  in_w_ready;
  logic                  in_b_valid;
  logic [1:0]            in_b_resp;
  logic [63:0]           in_b_addr;
  logic                  in_b_user;
  logic                  m_ar_valid;
  logic [63:0]           m_ar_addr;
  logic [7:0]            m_ar_len;
  logic                  m_r_ready;
  logic                  m_aw_valid;
  logic [63:0]           m_aw_addr;
  logic [7:0]            m_aw_len;
  logic                  m_w_valid;
  logic [63:0]           m_w_data;
  logic [7:0]            m_w_strb;
  logic                  m_w_last;
  logic                  m_b_ready;
  logic [CountWidth-1:0] reads;
  logic [CountWidth-1:0] writes;
  logic                  note_valid;
  logic                  note_write;
  logic [63:0]           note_addr;

  hotline_axi_guard #(
    .BusBits(64), .ReadOutstanding(Outstanding), .WriteOutstanding(Outstanding)
  ) dut (
    .clk_i, .rst_ni,
    .in_ar_valid_i, .in_ar_ready_o(in_ar_ready), .in_ar_addr_i, .in_ar_len_i,
    .in_r_valid_o(in_r_valid), .in_r_ready_i, .in_r_data_o(in_r_data), .in_r_resp_o(in_r_resp),
    .in_r_last_o(in_r_last), .in_r_addr_o(in_r_addr),
    .in_aw_valid_i, .in_aw_ready_o(in_aw_ready), .in_aw_addr_i, .in_aw_len_i, .in_aw_user_i,
    .in_w_valid_i, .in_w_ready_o(in_w_ready), .in_w_data_i, .in_w_strb_i, .in_w_last_i,
    .in_b_valid_o(in_b_valid), .in_b_ready_i, .in_b_resp_o(in_b_resp), .in_b_addr_o(in_b_addr),
    .in_b_user_o(in_b_user),
    .m_ar_valid_o(m_ar_valid), .m_ar_ready_i, .m_ar_addr_o(m_ar_addr), .m_ar_len_o(m_ar_len),
    .m_r_valid_i, .m_r_ready_o(m_r_ready), .m_r_data_i, .m_r_resp_i, .m_r_last_i,
    .m_aw_valid_o(m_aw_valid), .m_aw_ready_i, .m_aw_addr_o(m_aw_addr), .m_aw_len_o(m_aw_len),
    .m_w_valid_o(m_w_valid), .m_w_ready_i, .m_w_data_o(m_w_data), .m_w_strb_o(m_w_strb),
    .m_w_last_o(m_w_last),
    .m_b_valid_i, .m_b_ready_o(m_b_ready), .m_b_resp_i,
    .reads_in_flight_o(reads), .writes_in_flight_o(writes),
    .note_clear_i, .note_valid_o(note_valid), .note_write_o(note_write), .note_addr_o(note_addr)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // ---------------------------------------------------------------------------------------- reads

  logic                  ar_in;
  logic                  ar_out;
  logic                  r_in;
  logic                  read_ends;
  // Bursts taken from the core and not answered; those of them that the memory has.
  logic [CountWidth-1:0] reads_q;
  logic [CountWidth-1:0] reads_there_q;
  logic [8:0]            beat_q;      // of the burst being answered
  logic                  read_q;      // a burst is followed
  logic [63:0]           read_addr_q;
  logic [CountWidth-1:0] read_before_q;

  assign ar_in     = in_ar_valid_i && in_ar_ready;
  assign ar_out    = m_ar_valid && m_ar_ready_i;
  assign r_in      = m_r_valid_i && m_r_ready && reads_q != '0;
  assign read_ends = r_in && m_r_last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reads_q       <= '0;
      reads_there_q <= '0;
      beat_q        <= '0;
      read_q        <= 1'b0;
    end else begin
      reads_q       <= reads_q + CountWidth'(ar_in) - CountWidth'(read_ends);
      reads_there_q <= reads_there_q + CountWidth'(ar_out) - CountWidth'(read_ends);
      if (r_in) beat_q <= m_r_last_i ? '0 : beat_q + 1'b1;
      if (read_q && read_ends) begin
        read_q        <= read_before_q != '0;
        read_before_q <= read_before_q - 1'b1;
      end else if (!read_q && ar_in && pick_read_i) begin
        read_q        <= 1'b1;
        read_addr_q   <= in_ar_addr_i;
        read_before_q <= reads_q - CountWidth'(read_ends);
      end
    end
  end

  // The beat that came in the cycle before, if it is of the burst that is followed.
  logic        beat_known_q;
  logic [63:0] beat_data_q;
  logic [1:0]  beat_resp_q;
  logic        beat_last_q;
  logic [63:0] beat_addr_q;
  logic        r_empty;
  assign r_empty = !dut.u_r.out_valid_q || in_r_ready_i;

  always_ff @(posedge clk_i) begin
    // A beat that finds the output free appears at once; others wait in the proven skid register.
    beat_known_q <= rst_ni && r_in && read_q && read_before_q == '0 && r_empty;
    beat_data_q  <= m_r_data_i;
    beat_resp_q  <= m_r_resp_i;
    beat_last_q  <= m_r_last_i;
    beat_addr_q  <= {read_addr_q[63:12], 12'(read_addr_q[11:0] + 12'({beat_q, 3'b000}))};
  end

  logic [31:0] read_place;
  logic [31:0] reads_write;
  assign read_place  = 32'(dut.u_reads.read_q) + 32'(read_before_q);
  assign reads_write = 32'(dut.u_reads.read_q) + 32'(reads_q);

  // --------------------------------------------------------------------------------------- writes

  logic                  aw_in;
  logic                  aw_out;
  logic                  w_ends;
  logic                  b_in;
  logic [CountWidth-1:0] writes_q;
  logic [CountWidth-1:0] writes_there_q;  // addresses that the memory has, not answered
  logic [CountWidth+1:0] data_there_q;    // bursts whose data the memory has, not answered
  logic                  write_q;
  logic [64:0]           write_what_q;    // address, user
  logic [CountWidth-1:0] write_before_q;

  assign aw_in  = in_aw_valid_i && in_aw_ready;
  assign aw_out = m_aw_valid && m_aw_ready_i;
  assign w_ends = m_w_valid && m_w_ready_i && m_w_last;
  assign b_in   = m_b_valid_i && m_b_ready && writes_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_q       <= '0;
      writes_there_q <= '0;
      data_there_q   <= '0;
      write_q        <= 1'b0;
    end else begin
      writes_q       <= writes_q + CountWidth'(aw_in) - CountWidth'(b_in);
      writes_there_q <= writes_there_q + CountWidth'(aw_out) - CountWidth'(b_in);
      data_there_q   <= data_there_q + (CountWidth + 2)'(w_ends) - (CountWidth + 2)'(b_in);
      if (write_q && b_in) begin
        write_q        <= write_before_q != '0;
        write_before_q <= write_before_q - 1'b1;
      end else if (!write_q && aw_in && pick_write_i) begin
        write_q        <= 1'b1;
        write_what_q   <= {in_aw_addr_i, in_aw_user_i};
        write_before_q <= writes_q - CountWidth'(b_in);
      end
    end
  end

  logic        answer_known_q;
  logic [66:0] answer_q;
  always_ff @(posedge clk_i) begin
    answer_known_q <= rst_ni && b_in && write_q && write_before_q == '0
                      && (!dut.u_b.out_valid_q || in_b_ready_i);
    answer_q       <= {m_b_resp_i, write_what_q};
  end

  logic [31:0] write_place;
  logic [31:0] writes_write;
  assign write_place  = 32'(dut.u_writes.read_q) + 32'(write_before_q);
  assign writes_write = 32'(dut.u_writes.read_q) + 32'(writes_q);

  // ----------------------------------------------------------------------------------- the memory

  logic        m_ar_held_q;
  logic [71:0] m_ar_q;
  logic        m_aw_held_q;
  logic [71:0] m_aw_q;
  logic        m_w_held_q;
  logic [72:0] m_w_q;

  always_ff @(posedge clk_i) begin
    m_ar_held_q <= rst_ni && m_ar_valid && !m_ar_ready_i;
    m_ar_q      <= {m_ar_addr, m_ar_len};
    m_aw_held_q <= rst_ni && m_aw_valid && !m_aw_ready_i;
    m_aw_q      <= {m_aw_addr, m_aw_len};
    m_w_held_q  <= rst_ni && m_w_valid && !m_w_ready_i;
    m_w_q       <= {m_w_data, m_w_strb, m_w_last};
  end

  // ----------------------------------------------------------------------------------------- note

  logic        noted_q;
  logic        noted_write_q;
  logic [63:0] noted_addr_q;
  logic        read_error;
  logic        write_error;
  assign read_error  = in_r_valid && in_r_ready_i && in_r_resp[1];
  assign write_error = in_b_valid && in_b_ready_i && in_b_resp[1] && !in_b_user;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      noted_q <= 1'b0;
    end else begin
      if (note_clear_i) noted_q <= 1'b0;
      if ((note_clear_i || !noted_q) && (read_error || write_error)) begin
        noted_q       <= 1'b1;
        noted_write_q <= !read_error;
        noted_addr_q  <= read_error ? in_r_addr : in_b_addr;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    // The memory answers what it has; anything may come when nothing is in flight.
    if (reads_q != '0 && m_r_valid_i) assume (reads_there_q != '0);
    if (writes_q != '0 && m_b_valid_i) assume (writes_there_q != '0 && data_there_q != '0);
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      a_reads:  assert (reads == reads_q && 32'(reads) <= Outstanding);
      a_writes: assert (writes == writes_q && 32'(writes) <= Outstanding);
      if (beat_known_q) begin
        a_read_addr: assert (in_r_valid && in_r_addr == beat_addr_q && in_r_data == beat_data_q &&
                             in_r_resp == beat_resp_q && in_r_last == beat_last_q);
      end
      if (answer_known_q) begin
        a_write_addr: assert (in_b_valid && {in_b_resp, in_b_addr, in_b_user} == answer_q);
      end
      if (m_ar_held_q) a_ar_stable: assert (m_ar_valid && {m_ar_addr, m_ar_len} == m_ar_q);
      if (m_aw_held_q) a_aw_stable: assert (m_aw_valid && {m_aw_addr, m_aw_len} == m_aw_q);
      if (m_w_held_q) a_w_stable: assert (m_w_valid && {m_w_data, m_w_strb, m_w_last} == m_w_q);
      // Bursts whose data are through, or on offer, never outnumber the addresses offered.
      a_w_behind: assert (32'(data_there_q) + 32'(m_w_valid) <=
                          32'(writes_there_q) + 32'(m_aw_valid));
      a_note: assert (note_valid == noted_q);
      if (noted_q) a_note_what: assert (note_write == noted_write_q && note_addr == noted_addr_q);
      if (reads_q == '0 && m_r_valid_i) a_stray_r: assert (!dut.u_r.in_valid_i);
      if (writes_q == '0 && m_b_valid_i) a_stray_b: assert (!dut.u_b.in_valid_i);

      // What makes them inductive.
      i_reads:  assert (dut.u_reads.count_q == reads_q && 32'(reads_q) <= Outstanding &&
                        32'(dut.u_reads.read_q) < Outstanding &&
                        (!dut.u_reads.ready_q || 32'(reads_q) != Outstanding));
      i_reads_write: assert (32'(dut.u_reads.write_q) ==
          (reads_write >= Outstanding ? reads_write - Outstanding : reads_write));
      i_reads_there: assert (32'(reads_q) == 32'(reads_there_q) + 32'(dut.u_ar.out_valid_q) +
                                             32'(dut.u_ar.skid_valid_q));
      i_ar: assert ((!dut.u_ar.skid_valid_q || dut.u_ar.out_valid_q) &&
                    !(dut.u_ar.ready_q && dut.u_ar.skid_valid_q));
      i_offset: assert (dut.read_offset_q == 12'({beat_q, 3'b000}));
      if (read_q) begin
        i_read: assert (read_before_q < reads_q && read_addr_q == dut.u_reads.gen_lut.u_ram.mem[
                            read_place >= Outstanding ? read_place - Outstanding : read_place]);
      end
      i_r: assert ((!dut.u_r.skid_valid_q || dut.u_r.out_valid_q) &&
                   !(dut.u_r.ready_q && dut.u_r.skid_valid_q));

      i_writes: assert (dut.u_writes.count_q == writes_q && 32'(writes_q) <= Outstanding &&
                        32'(dut.u_writes.read_q) < Outstanding &&
                        (!dut.u_writes.ready_q || 32'(writes_q) != Outstanding));
      i_writes_write: assert (32'(dut.u_writes.write_q) ==
          (writes_write >= Outstanding ? writes_write - Outstanding : writes_write));
      i_writes_there: assert (32'(writes_q) == 32'(writes_there_q) + 32'(dut.u_aw.out_valid_q) +
                                               32'(dut.u_aw.skid_valid_q));
      i_aw: assert ((!dut.u_aw.skid_valid_q || dut.u_aw.out_valid_q) &&
                    !(dut.u_aw.ready_q && dut.u_aw.skid_valid_q));
      i_b: assert ((!dut.u_b.skid_valid_q || dut.u_b.out_valid_q) &&
                   !(dut.u_b.ready_q && dut.u_b.skid_valid_q));
      i_w: assert ((!dut.u_w.skid_valid_q || dut.u_w.out_valid_q) &&
                   !(dut.u_w.ready_q && dut.u_w.skid_valid_q));
      i_lead: assert (32'(signed'(dut.lead_q)) == 32'(writes_there_q) - 32'(data_there_q));
      i_lead_least: assert (signed'(dut.lead_q) >= -1 &&
                            (signed'(dut.lead_q) >= 0 || m_aw_valid));
      i_data: assert (32'(data_there_q) <= Outstanding + 1);
      if (write_q) begin
        i_write: assert (write_before_q < writes_q && write_what_q ==
            dut.u_writes.gen_lut.u_ram.mem[
                write_place >= Outstanding ? write_place - Outstanding : write_place]);
      end

      c_read:      cover (beat_known_q && beat_q == 2 && reads_q == 2);
      c_full:      cover (32'(reads_q) == Outstanding && 32'(writes_q) == Outstanding);
      c_write:     cover (answer_known_q && writes_q != '0);
      c_data_fast: cover (signed'(dut.lead_q) == -1);
      c_note:      cover (noted_q && noted_write_q);
      c_stray:     cover (rst_ni && reads_q == '0 && m_r_valid_i && m_r_ready);
    end
  end

endmodule
