"""The experiments of paper 000 (Rodrigues, Pereira and Ribeiro 2013), its tables 2 to 6."""
